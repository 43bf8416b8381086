package credential

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
)

// ErrUnsealed says that sealed data was not made by this master for this place, or was damaged.
var ErrUnsealed = errors.New("sealed data does not open: it belongs elsewhere, was damaged, or the master key is another one")

// sealVersion begins what is sealed, so that the cipher can be changed one day.
const sealVersion = 1

// Seal encrypts a secret for the database (AES-256-GCM, a random nonce each time). It opens only for the same purpose, such
// as "webhook secret", and the same row. Safe for concurrent use.
func (m *Master) Seal(purpose, row string, secret []byte) []byte {
	return m.sealer().Seal([]byte{sealVersion}, nil, secret, place(purpose, row))
}

// Unseal gives back what [Master.Seal] was given, or [ErrUnsealed].
func (m *Master) Unseal(purpose, row string, sealed []byte) ([]byte, error) {
	if len(sealed) == 0 || sealed[0] != sealVersion {
		return nil, ErrUnsealed
	}
	secret, err := m.sealer().Open(nil, nil, sealed[1:], place(purpose, row))
	if err != nil {
		return nil, ErrUnsealed
	}
	return secret, nil
}

func (m *Master) sealer() cipher.AEAD {
	block, err := aes.NewCipher(m.seal)
	if err != nil {
		panic("credential: AES with a key of 32 bytes: " + err.Error())
	}
	sealer, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("credential: GCM over AES: " + err.Error())
	}
	return sealer
}

// place binds sealed data to where it is kept. The length keeps two places from having the same text.
func place(purpose, row string) []byte {
	return fmt.Appendf(nil, "%d:%s:%s", len(purpose), purpose, row)
}
