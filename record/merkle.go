package record

import (
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
)

// A Root is the head of the Merkle tree (RFC 6962, SHA-256) over the content hashes of the first
// Size versions of a record. Who keeps one elsewhere can find out later whether these versions
// are still the ones that were there.
type Root struct {
	Size int    `json:"size"` // versions
	Hash string `json:"hash"` // in hexadecimal
}

// An InclusionProof shows that a version is one of those of a [Root].
type InclusionProof struct {
	Version int      `json:"version"` // counted from 1
	Size    int      `json:"size"`    // of the root
	Hashes  []string `json:"hashes"`
}

// Verify returns an error that wraps [ErrProof] unless the version of that content hash is the
// one of the proof under the root.
func (p *InclusionProof) Verify(contentHash string, root Root) error {
	leaf, err := hex.DecodeString(contentHash)
	if err != nil || p.Version < 1 || p.Size != root.Size {
		return fmt.Errorf("%w: it is of another version or root", ErrProof)
	}
	top, hashes, err := decoded(root.Hash, p.Hashes)
	if err == nil {
		err = proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(p.Version-1), uint64(p.Size),
			rfc6962.DefaultHasher.HashLeaf(leaf), hashes, top)
	}
	return failed(err)
}

// A ConsistencyProof shows that the versions of one [Root] are the first ones of another.
type ConsistencyProof struct {
	From   int      `json:"from"` // size of the earlier root
	To     int      `json:"to"`   // size of the later one
	Hashes []string `json:"hashes"`
}

// Verify returns an error that wraps [ErrProof] unless the later root has all that the earlier
// one has, and what is more behind it.
func (p *ConsistencyProof) Verify(earlier, later Root) error {
	if p.From != earlier.Size || p.To != later.Size || p.From < 1 || p.To < p.From {
		return fmt.Errorf("%w: it is of other roots", ErrProof)
	}
	before, hashes, err := decoded(earlier.Hash, p.Hashes)
	if err != nil {
		return failed(err)
	}
	after, err := hex.DecodeString(later.Hash)
	if err == nil {
		err = proof.VerifyConsistency(rfc6962.DefaultHasher, uint64(p.From), uint64(p.To), hashes, before, after)
	}
	return failed(err)
}

func failed(err error) error {
	var root proof.RootMismatchError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &root):
		return fmt.Errorf("%w: it shows the root %x, and not %x", ErrProof, root.CalculatedRoot, root.ExpectedRoot)
	}
	return fmt.Errorf("%w: %v", ErrProof, err)
}

// isHash reports whether text is a hash in hexadecimal.
func isHash(text string) bool {
	hash, err := hex.DecodeString(text)
	return err == nil && len(hash) == rfc6962.DefaultHasher.Size()
}

// decoded are hashes in hexadecimal as bytes.
func decoded(first string, rest []string) (top []byte, hashes [][]byte, err error) {
	if top, err = hex.DecodeString(first); err != nil {
		return nil, nil, err
	}
	for _, h := range rest {
		hash, err := hex.DecodeString(h)
		if err != nil || len(hash) != rfc6962.DefaultHasher.Size() {
			return nil, nil, errors.New("a hash is none")
		}
		hashes = append(hashes, hash)
	}
	return top, hashes, nil
}

var ranges = compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}

// A tree is the Merkle tree over content hashes. Its zero value has none.
type tree struct {
	top    *compact.Range
	leaves [][]byte
}

// add adds the content hash of the next version.
func (t *tree) add(contentHash string) {
	hash, err := hex.DecodeString(contentHash)
	if err != nil {
		hash = []byte(contentHash) // of a version that is broken; no root of it is right
	}
	t.push(rfc6962.DefaultHasher.HashLeaf(hash))
}

func (t *tree) push(leaf []byte) {
	if t.top == nil {
		t.top = ranges.NewEmptyRange(0)
	}
	t.leaves = append(t.leaves, leaf)
	if err := t.top.Append(leaf, nil); err != nil {
		panic("record: a leaf follows the one before it: " + err.Error())
	}
}

// root is the hash of all leaves, "" if there are none.
func (t *tree) root() string {
	if t.top == nil {
		return ""
	}
	hash, err := t.top.GetRootHash(nil)
	if err != nil {
		panic("record: the tree is not empty: " + err.Error())
	}
	return hex.EncodeToString(hash)
}

// first is the tree of the first leaves.
func (t *tree) first(size int) *tree {
	part := new(tree)
	for _, leaf := range t.leaves[:size] {
		part.push(leaf)
	}
	return part
}

// prove computes the hashes of a proof.
func (t *tree) prove(n proof.Nodes, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	hashes := make([][]byte, len(n.IDs))
	for i, id := range n.IDs {
		begin, end := id.Coverage()
		hashes[i] = t.node(begin, end)
	}
	if hashes, err = n.Rehash(hashes, rfc6962.DefaultHasher.HashChildren); err != nil {
		return nil, err
	}
	told := make([]string, len(hashes))
	for i := range hashes {
		told[i] = hex.EncodeToString(hashes[i])
	}
	return told, nil
}

// node is the hash of a perfect subtree.
func (t *tree) node(begin, end uint64) []byte {
	if end-begin == 1 {
		return t.leaves[begin]
	}
	middle := (begin + end) / 2
	return rfc6962.DefaultHasher.HashChildren(t.node(begin, middle), t.node(middle, end))
}
