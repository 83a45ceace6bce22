package checkpoint

import (
	"encoding/binary"
	"time"
)

// Forge returns an envelope with a header that is right for any payload.
func Forge(payload []byte, count int) []byte {
	e, _, err := Seal(nil, Head{}, time.UnixMilli(0), 1, []Entry{{Kind: Done}})
	if err != nil {
		panic(err)
	}
	e = append(e[:envelopeHead], payload...)
	binary.BigEndian.PutUint32(e[8:], uint32(len(payload)))
	binary.BigEndian.PutUint32(e[12:], uint32(count))
	binary.BigEndian.PutUint32(e[sumAt:], envelopeSum(e))
	return e
}
