package gateway

import (
	"encoding"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Config is a whole set-up as one value, in the JSON form that design and documentation describe. [ParseConfig] reads
// and checks it; [WithConfig] hands it to [New]. The server reads the same schema as YAML.
type Config struct {
	Listen    string           `json:"listen,omitzero"` // host:port for the server; 127.0.0.1:9000 when empty
	Master    MasterConfig     `json:"master,omitzero"`
	Providers []ProviderConfig `json:"providers,omitempty"`
	Models    []ModelConfig    `json:"models,omitempty"`
	Keys      []KeyConfig      `json:"keys,omitempty"`
	Prices    PricesConfig     `json:"prices,omitzero"`
	Queue     QueueConfig      `json:"queue,omitzero"`
	Server    ServerConfig     `json:"server,omitzero"`
	Log       LogConfig        `json:"log,omitzero"`
}

// MasterConfig holds the admin keys. They are valid for calls too.
type MasterConfig struct {
	Keys []SecretRef `json:"keys,omitempty"`
}

// ProviderConfig describes one upstream account.
type ProviderConfig struct {
	Name           string            `json:"name"`
	Type           string            `json:"type"` // openai, echo
	BaseURL        string            `json:"base_url,omitzero"`
	Keys           []SecretRef       `json:"keys,omitempty"`
	Headers        map[string]string `json:"headers,omitempty"`
	Timeouts       TimeoutsConfig    `json:"timeouts,omitzero"`
	MaxConcurrency int               `json:"max_concurrency,omitzero"` // 0: no bound
	Proxy          string            `json:"proxy,omitzero"`           // URL of an HTTP proxy; absent: the environment's
	Quirks         QuirksConfig      `json:"quirks,omitzero"`
}

// TimeoutsConfig holds a provider's timeouts. An absent one has the provider's default; 0s switches it off.
type TimeoutsConfig struct {
	Connect   *Duration `json:"connect,omitzero"`    // DNS, TCP and TLS; default 10s
	FirstByte *Duration `json:"first_byte,omitzero"` // until the answer's headers, on a stream its first output; default 120s
	Idle      *Duration `json:"idle,omitzero"`       // between two reads of an answer; default 60s
	Total     *Duration `json:"total,omitzero"`      // the whole attempt; default none
}

// QuirksConfig says what an upstream wants otherwise than OpenAI.
type QuirksConfig struct {
	Drop           []string          `json:"drop,omitempty"`            // outermost members that are not sent
	Rename         map[string]string `json:"rename,omitempty"`          // outermost members that are sent under another name
	NoIncludeUsage bool              `json:"no_include_usage,omitzero"` // refuses stream_options: do not ask for usage
	RepairChunks   bool              `json:"repair_chunks,omitzero"`    // fill in what strict SDKs miss in streamed chunks
}

// ModelConfig describes one alias.
type ModelConfig struct {
	Alias          string            `json:"alias"`
	Strategy       string            `json:"strategy,omitzero"` // failover
	Candidates     []CandidateConfig `json:"candidates"`
	Retry          *RetryConfig      `json:"retry,omitzero"`
	MaxConcurrency int               `json:"max_concurrency,omitzero"`
	Strict         bool              `json:"strict,omitzero"`
}

// CandidateConfig describes one upstream model behind an alias.
type CandidateConfig struct {
	Provider       string `json:"provider"`
	Model          string `json:"model"`
	Price          *Price `json:"price,omitzero"`
	MaxConcurrency int    `json:"max_concurrency,omitzero"`
	MaxOutput      int64  `json:"max_output,omitzero"`
}

// RetryConfig describes a [DefaultRetryPolicy]. An absent member has the default.
type RetryConfig struct {
	MaxRetries *int           `json:"max_retries,omitzero"`
	On         []string       `json:"on,omitempty"` // connect, rate_limit, http_5xx, timeout
	Backoff    *BackoffConfig `json:"backoff,omitzero"`
	Budget     *Duration      `json:"budget,omitzero"`
}

// BackoffConfig describes the waits between retries.
type BackoffConfig struct {
	Base   *Duration `json:"base,omitzero"`
	Max    *Duration `json:"max,omitzero"`
	Jitter *float64  `json:"jitter,omitzero"`
}

// KeyConfig describes one gateway key: the secret itself by reference, or its SHA-256.
type KeyConfig struct {
	Name   string    `json:"name"`
	Secret SecretRef `json:"secret,omitzero"`
	Hash   string    `json:"hash,omitzero"` // sha256:HEX
	App    string    `json:"app,omitzero"`
	Models []string  `json:"models,omitempty"` // aliases, exact or with *; absent: all
}

// PricesConfig says what happens to calls of models without a price.
type PricesConfig struct {
	Unpriced string `json:"unpriced,omitzero"` // allow (default) or refuse
}

// QueueConfig bounds the wait for a free slot.
type QueueConfig struct {
	MaxWait    *Duration `json:"max_wait,omitzero"`    // default 5s; 0s: do not wait
	MaxWaiting *int      `json:"max_waiting,omitzero"` // default 1000
}

// ServerConfig bounds what clients of the HTTP surface can do.
type ServerConfig struct {
	MaxBody        *ByteSize `json:"max_body,omitzero"`        // of a request, also after decompression; default 32MiB
	WriteStall     *Duration `json:"write_stall,omitzero"`     // how long a client may take no byte; default 30s
	KeepAlive      *Duration `json:"keepalive,omitzero"`       // comment lines during silence on a stream; default off
	Drain          *Duration `json:"drain,omitzero"`           // how long calls in flight may go on at shutdown; default 30s
	MaxConnections *int      `json:"max_connections,omitzero"` // default 10000
}

// LogConfig describes the log.
type LogConfig struct {
	Format string `json:"format,omitzero"` // json or text; default text on a terminal, else json
	Level  string `json:"level,omitzero"`  // debug, info (default), warn, error
}

// SecretRef says where a secret is: env:NAME, file:/path, or the text itself. It prints as ***.
type SecretRef struct{ ref string }

// NewSecretRef returns a reference as it stands in a configuration.
func NewSecretRef(ref string) SecretRef { return SecretRef{ref} }

// IsZero reports whether there is no reference.
func (r SecretRef) IsZero() bool { return r.ref == "" }

// Resolve returns the secret. It fails when the variable is not set, the file cannot be read, or the secret is empty.
func (r SecretRef) Resolve() (Secret, error) {
	text := r.ref
	switch scheme, rest, _ := strings.Cut(r.ref, ":"); scheme {
	case "env":
		value, ok := os.LookupEnv(rest)
		if !ok {
			return Secret{}, fmt.Errorf("the environment variable %s is not set", rest)
		}
		if text = strings.TrimSpace(value); text == "" {
			return Secret{}, fmt.Errorf("the environment variable %s is empty", rest)
		}
	case "file":
		content, err := os.ReadFile(rest)
		if err != nil {
			return Secret{}, fmt.Errorf("cannot read the secret: %w", err)
		}
		if text = strings.TrimSpace(string(content)); text == "" {
			return Secret{}, fmt.Errorf("the secret file %s is empty", rest)
		}
	case "enc":
		return Secret{}, errors.New("enc: secrets are not supported by this version; use env:NAME or file:/path")
	}
	if strings.TrimSpace(text) == "" {
		return Secret{}, errors.New("the secret is empty")
	}
	return NewSecret(text), nil
}

// String returns the reference when it names a place, and *** when it is the secret itself.
func (r SecretRef) String() string {
	if strings.HasPrefix(r.ref, "env:") || strings.HasPrefix(r.ref, "file:") || r.ref == "" {
		return r.ref
	}
	return redacted
}

// Format writes what String returns, whatever the verb.
func (r SecretRef) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, r.String()) }

// MarshalText returns the same as String.
func (r SecretRef) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText takes a reference as it stands in a configuration.
func (r *SecretRef) UnmarshalText(text []byte) error { r.ref = string(text); return nil }

// Duration is a [time.Duration] that reads and writes as text: 1.5s, 10m.
type Duration time.Duration

// MarshalText writes the duration as [time.Duration.String] does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what [time.ParseDuration] reads, and refuses negative durations.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 1.5s or 10m", text)
	}
	if v < 0 {
		return fmt.Errorf("the duration %s is negative", text)
	}
	*d = Duration(v)
	return nil
}

// ByteSize is a number of bytes that reads and writes as text: 512KiB, 32MiB, 1GB, 4096.
type ByteSize int64

//nolint:gochecknoglobals // a table that never changes
var byteUnits = [...]struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1},
}

// MarshalText writes the size in the largest binary unit that keeps it whole.
func (s ByteSize) MarshalText() ([]byte, error) {
	for i := 2; i >= 0; i-- {
		if u := byteUnits[i]; s != 0 && int64(s)%u.bytes == 0 {
			return fmt.Appendf(nil, "%d%s", int64(s)/u.bytes, u.suffix), nil
		}
	}
	return strconv.AppendInt(nil, int64(s), 10), nil
}

// UnmarshalText reads a whole number of bytes, KiB, MiB, GiB, KB, MB or GB.
func (s *ByteSize) UnmarshalText(text []byte) error {
	for _, u := range byteUnits {
		number, ok := strings.CutSuffix(string(text), u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/u.bytes {
			break
		}
		*s = ByteSize(n * u.bytes)
		return nil
	}
	return fmt.Errorf("%q is not a size such as 32MiB", text)
}

var (
	_ encoding.TextUnmarshaler = (*SecretRef)(nil)
	_ encoding.TextUnmarshaler = (*Duration)(nil)
	_ encoding.TextUnmarshaler = (*ByteSize)(nil)
)

// ParseConfig reads a configuration from its JSON text and checks it as a whole. ${NAME} and ${NAME:-default} in
// string values are taken from the environment; $$ is a dollar sign. The error is [Problems] and lists everything that
// is wrong: unknown members, values of the wrong type, variables that are not set, names that do not exist. The Config
// that comes with it is what could be read, for a caller who wants to check more of it; it is not valid.
func ParseConfig(text []byte) (Config, error) {
	var problems, shape, meaning Problems
	expanded := expandDocument(text, os.LookupEnv, &problems)
	if expanded == nil {
		return Config{}, problems
	}
	checkShape(expanded, &shape)
	problems.addNew(shape)
	var config Config
	if err := json.Unmarshal(expanded, &config); err != nil {
		if len(problems) == 0 {
			problems.addf("", "%s", err)
		}
		return Config{}, problems
	}
	meaning.join("", config.Validate())
	problems.addNew(meaning)
	return config, problems.err()
}
