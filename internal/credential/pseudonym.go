package credential

// Pseudonym stands for a text where the text itself must not be kept: 26 characters of a-z and 2-7, the same each time, from
// which nobody without the master can find out the text, or whether it is the one they guess.
func (m *Master) Pseudonym(text string) string { return macText(m.pseudonym, text, fullMAC) }
