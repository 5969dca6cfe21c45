package gateway

import (
	"context"
	"log/slog"
	"time"

	"github.com/shopspring/decimal"
)

// UsageSource says where a record's usage comes from.
type UsageSource string

// The sources of usage.
const (
	UsageReported  UsageSource = "reported"  // the provider said so
	UsageEstimated UsageSource = "estimated" // a cut call; the gateway's own estimate, for limits and dashboards only
	UsageMissing   UsageSource = "missing"   // the provider said nothing
)

// Why a record has no cost.
const (
	NoCostUsage = "usage_missing" // the provider reported no usage
	NoCostPrice = "no_price"      // no price is configured for the model
)

// AttemptInfo describes one attempt of a call. The costs of a call's attempts add up to the call's cost.
type AttemptInfo struct {
	Provider       string           `json:"provider"`
	Model          string           `json:"model"`
	KeyFingerprint string           `json:"key,omitzero"`
	Outcome        Outcome          `json:"outcome"`
	Status         int              `json:"status,omitzero"` // the upstream's HTTP status
	Latency        time.Duration    `json:"-"`
	Milliseconds   int64            `json:"ms"`
	Usage          *Usage           `json:"usage,omitzero"`
	CostUSD        *decimal.Decimal `json:"cost_usd,omitempty"`
	AtRisk         bool             `json:"at_risk,omitzero"` // may have cost money that nobody reported
	Error          string           `json:"error,omitzero"`
}

// Record says what happened to one call. Exactly one is made per call, when the answer is complete: for a stream, when
// it has ended, failed or been closed. It is immutable once a Recorder has seen it.
type Record struct {
	Time           time.Time        `json:"ts"`
	TraceID        string           `json:"trace_id"`
	KeyID          string           `json:"key_id,omitzero"`
	App            string           `json:"app,omitzero"`
	API            API              `json:"api"`
	ModelRequested string           `json:"model_requested"`
	ModelUpstream  string           `json:"model_upstream,omitzero"`
	Provider       string           `json:"provider,omitzero"`
	Status         int              `json:"status"`
	Outcome        Outcome          `json:"outcome"`
	Stream         bool             `json:"stream"`
	Latency        time.Duration    `json:"-"`
	FirstToken     time.Duration    `json:"-"` // until the first output; 0 when there was none or the call is not a stream
	LatencyMS      int64            `json:"latency_ms"`
	FirstTokenMS   *int64           `json:"first_token_ms,omitzero"`
	Usage          Usage            `json:"usage"`
	UsageSource    UsageSource      `json:"usage_source"`
	CostUSD        *decimal.Decimal `json:"cost_usd"` // nil when unknown; NoCost says why
	NoCost         string           `json:"no_cost,omitzero"`
	PriceSource    string           `json:"price_source,omitzero"`
	Attempts       []AttemptInfo    `json:"attempts"`
	RetryCount     int              `json:"retry_count"`
	FallbackFrom   string           `json:"fallback_from,omitzero"`
	Cache          string           `json:"cache,omitzero"`
	Error          string           `json:"error,omitzero"`
	ErrorCode      string           `json:"error_code,omitzero"`
}

// Recorder receives the record of every call. It must not block the call, must not change the record, and must be safe
// for concurrent use. The context is the call's, without its cancellation.
type Recorder interface {
	Record(ctx context.Context, r *Record)
}

// RecorderFunc makes a function a [Recorder].
type RecorderFunc func(ctx context.Context, r *Record)

// Record calls f.
func (f RecorderFunc) Record(ctx context.Context, r *Record) { f(ctx, r) }

// LogRecorder returns a Recorder that writes one line per call: Info for calls that succeeded, were canceled or were
// the caller's own mistake, Warn for those that the gateway or an upstream failed.
func LogRecorder(logger *slog.Logger) Recorder { return logRecorder{logger} }

type logRecorder struct{ logger *slog.Logger }

func (l logRecorder) Record(ctx context.Context, r *Record) {
	level := slog.LevelInfo
	switch r.Outcome {
	case OutcomeNotSent, OutcomeRefused, OutcomeUnknown, OutcomeInterrupted:
		level = slog.LevelWarn
	default:
	}
	if !l.logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("trace_id", r.TraceID), slog.String("api", string(r.API)), slog.String("model", r.ModelRequested),
		slog.Int("status", r.Status), slog.String("outcome", r.Outcome.String()), slog.Int64("ms", r.LatencyMS),
		slog.Bool("stream", r.Stream),
	}
	if r.KeyID != "" {
		attrs = append(attrs, slog.String("key", r.KeyID))
	}
	if r.Provider != "" {
		attrs = append(attrs, slog.String("provider", r.Provider), slog.String("upstream_model", r.ModelUpstream))
	}
	if r.FirstTokenMS != nil {
		attrs = append(attrs, slog.Int64("first_token_ms", *r.FirstTokenMS))
	}
	attrs = append(attrs, slog.String("usage", string(r.UsageSource)),
		slog.Int64("prompt_tokens", r.Usage.PromptTokens()), slog.Int64("completion_tokens", r.Usage.CompletionTokens()))
	if r.CostUSD != nil {
		attrs = append(attrs, slog.String("cost_usd", r.CostUSD.String()))
	} else if r.NoCost != "" {
		attrs = append(attrs, slog.String("no_cost", r.NoCost))
	}
	if r.RetryCount > 0 {
		attrs = append(attrs, slog.Int("retries", r.RetryCount))
	}
	if r.Error != "" {
		attrs = append(attrs, slog.String("error", r.Error), slog.String("code", r.ErrorCode))
	}
	l.logger.LogAttrs(ctx, level, "call", attrs...)
}
