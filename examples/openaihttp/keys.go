package openaihttp

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"

	"github.com/gatewright/gateway"
)

// Key is a gateway key. The secret itself is not kept.
type Key struct {
	Name   string            // names the key in records
	Hash   [sha256.Size]byte // of the secret; see [HashKey]
	App    string            // the application that it belongs to
	Models []string          // aliases that it may use, exact or with *; empty means all
	Admin  bool              // may use the admin routes
}

// HashKey returns the form in which a key is kept.
func HashKey(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

func keyFromConfig(k gateway.KeyConfig) (Key, error) {
	key := Key{Name: k.Name, App: k.App, Models: k.Models}
	if k.Hash != "" {
		digest, err := hex.DecodeString(strings.TrimPrefix(k.Hash, "sha256:"))
		if err != nil || len(digest) != len(key.Hash) {
			return Key{}, errors.New("hash must be sha256: and 64 hexadecimal digits")
		}
		copy(key.Hash[:], digest)
		return key, nil
	}
	secret, err := k.Secret.Resolve()
	if err != nil {
		return Key{}, err
	}
	key.Hash = HashKey(secret.Reveal())
	return key, nil
}

// keySet finds keys by hash. Looking up a hash tells an attacker nothing about a secret, whatever time it takes.
type keySet struct{ byHash map[[sha256.Size]byte]*Key }

func (s *keySet) add(keys ...Key) {
	if s.byHash == nil {
		s.byHash = make(map[[sha256.Size]byte]*Key)
	}
	for _, k := range keys {
		if k.Hash != HashKey("") { // an empty secret opens nothing
			s.byHash[k.Hash] = &k
		}
	}
}

// Authenticator finds the keys of requests, for programs whose keys are not all known from the start or whose callers
// present something else. It must be safe for concurrent use.
type Authenticator interface {
	// Authenticate returns the key that r presents, which may be without a Hash, and nil when it presents none that is
	// valid. An error means that nobody knows: the call is refused, with the error's status if it is a *gateway.Error.
	// Take a gateway key from [Presented]: whatever stores keys need not see the secret.
	Authenticate(r *http.Request) (*Key, error)
}

// Presented returns the hash of the gateway key that a request presents, and whether it presents exactly one.
func Presented(r *http.Request) (hash [sha256.Size]byte, ok bool) {
	token, ok := credential(r.Header)
	return HashKey(token), ok
}

// find returns the key whose secret the request presents, or nil. Unknown and malformed credentials cost the same.
func (s *keySet) find(r *http.Request) *Key {
	hash, ok := Presented(r)
	key := s.byHash[hash]
	if key == nil || !ok || subtle.ConstantTimeCompare(key.Hash[:], hash[:]) != 1 {
		return nil
	}
	return key
}

// credential returns what the request presents as its key: a bearer token, or an x-api-key or api-key header, as the
// clients of Anthropic and Azure send it. There must be exactly one.
func credential(header http.Header) (token string, ok bool) {
	found := 0
	for _, value := range header["Authorization"] {
		scheme, rest, _ := strings.Cut(value, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return "", false
		}
		token = strings.Trim(rest, " ")
		found++
	}
	if found == 0 {
		for _, name := range [...]string{"X-Api-Key", "Api-Key"} {
			for _, value := range header[name] {
				token = value
				found++
			}
		}
	}
	return token, found == 1 && token != ""
}

func (k *Key) caller() gateway.Caller {
	return gateway.Caller{KeyID: k.Name, App: k.App, Models: k.Models}
}
