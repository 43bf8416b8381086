package credential

import "strings"

const voucherPrefix = "wsv_"

// MintVoucher makes the voucher for a subscription's id: wsv_ and 32 characters of a-z and 2-7, the same each time. Its MAC
// has 80 bits, which the wire's form leaves room for: enough, since a guess can only be tried against the core. MintVoucher
// panics if id is not one made by [NewID].
func (m *Master) MintVoucher(id string) string {
	mustBeID(id)
	return voucherPrefix + id + macText(m.voucher, id, shortMAC)
}

// OpenVoucher gives the id of the subscription a voucher was made for. For any other text ok is false.
func (m *Master) OpenVoucher(voucher string) (id string, ok bool) {
	text, found := strings.CutPrefix(voucher, voucherPrefix)
	if !found || len(text) != idLength+shortMAC {
		return "", false
	}
	id, ok = openMAC(m.voucher, text, shortMAC)
	if !ok {
		return "", false
	}
	return id, true
}
