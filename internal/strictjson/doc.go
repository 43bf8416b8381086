// Package strictjson reads JSON that came from outside, and lets nothing ambiguous in.
//
// What it accepts has one meaning for every reader that sees it later: one object, no key twice, valid UTF-8, no lone
// surrogate, no number a double cannot hold, no more than a set depth and length, nothing after it. Numbers stay as they
// were written. An error says what is wrong and where, never what the content was. An array of such objects is taken apart by
// [Array], and each element then read for itself.
//
// What does not belong here: what the fields mean. Required fields, lengths and ranges are checked by who asked.
package strictjson
