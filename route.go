package gateway

import (
	"errors"
	"fmt"
	"strings"
)

// Alias is a model name that callers use, and what stands behind it. Callers never see anything else.
type Alias struct {
	Name       string
	Candidates []Candidate
	// Strategy orders the candidates for each call; nil is [Failover].
	Strategy Strategy
	// Retry decides after each failed attempt; nil is [NewRetryPolicy].
	Retry RetryPolicy
	// MaxConcurrency bounds the calls of this alias that run at once; 0 means no bound.
	MaxConcurrency int
	// Strict refuses bodies with outermost members that the OpenAI interface does not define, instead of passing
	// them on.
	Strict bool
}

// Candidate is one upstream model that can serve an alias.
type Candidate struct {
	Provider string // the provider's name
	Model    string // the model's name there
	// Price, in USD per million tokens; nil asks the Client's CostMeter.
	Price *Price
	// MaxConcurrency bounds the attempts on this candidate that run at once; 0 means no bound of its own.
	MaxConcurrency int
	// MaxOutput is the most tokens that the model generates, for the worst case of a call that does not say; 0 means
	// unknown.
	MaxOutput int64
}

// Ref names the candidate's model at its provider.
func (c Candidate) Ref() ModelRef { return ModelRef{c.Provider, c.Model} }

// Strategy orders an alias's candidates for one call. The slice that it gets holds those that can be used now and must
// not be changed; it returns the order in which to try them, and may leave some out. It must be safe for concurrent
// use and must not block.
type Strategy interface {
	Order(req *Request, healthy []*Candidate) []*Candidate
}

// Failover is the Strategy that keeps the listed order.
type Failover struct{}

// Order implements [Strategy].
func (Failover) Order(_ *Request, healthy []*Candidate) []*Candidate { return healthy }

func (a Alias) validate(path string, provider func(name string) bool) error {
	var problems Problems
	if a.Name == "" {
		problems.addf(path+".alias", "an alias needs a name")
	}
	if len(a.Candidates) == 0 {
		problems.addf(path+".candidates", "alias %q needs at least one candidate", a.Name)
	}
	if a.MaxConcurrency < 0 {
		problems.addf(path+".max_concurrency", "must not be negative: %d", a.MaxConcurrency)
	}
	for i, c := range a.Candidates {
		at := fmt.Sprintf("%s.candidates[%d]", path, i)
		switch {
		case c.Provider == "":
			problems.addf(at+".provider", "a candidate needs a provider")
		case !provider(c.Provider):
			problems.addf(at+".provider", "there is no provider %q", c.Provider)
		}
		if c.Model == "" {
			problems.addf(at+".model", "a candidate needs the model's name at the provider")
		}
		if c.MaxConcurrency < 0 {
			problems.addf(at+".max_concurrency", "must not be negative: %d", c.MaxConcurrency)
		}
		if c.Price != nil {
			if err := c.Price.Validate(); err != nil {
				problems.addf(at+".price", "%s", err)
			}
		}
	}
	return problems.err()
}

// Problem is one thing that is wrong with a set-up.
type Problem struct {
	Path    string // where: models[0].candidates[1].provider
	Message string // what, and what to do
}

// Problems is everything that is wrong with a set-up, found at once. It is an error.
type Problems []Problem //nolint:errname,recvcheck // it reads as what it is; only the collector has a pointer

// Error lists the problems, one a line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.Message
		if problem.Path != "" {
			lines[i] = problem.Path + ": " + problem.Message
		}
	}
	return strings.Join(lines, "\n")
}

func (p *Problems) addf(path, format string, args ...any) {
	*p = append(*p, Problem{path, fmt.Sprintf(format, args...)})
}

// join adds the problems in err, if it is Problems, or err itself at path.
func (p *Problems) join(path string, err error) {
	var more Problems
	switch {
	case err == nil:
	case errors.As(err, &more):
		*p = append(*p, more...)
	default:
		p.addf(path, "%s", err)
	}
}

// addNew adds the problems whose paths have none yet: a value that could not be read is not wrong a second time.
func (p *Problems) addNew(more Problems) {
	known := make(map[string]bool, len(*p))
	for _, problem := range *p {
		known[problem.Path] = true
	}
	for _, problem := range more {
		if !known[problem.Path] {
			*p = append(*p, problem)
		}
	}
}

// joinBelow adds the problems in err with their paths below path, or err itself at path.
func (p *Problems) joinBelow(path string, err error) {
	below, ok := errors.AsType[Problems](err)
	if !ok {
		p.join(path, err)
		return
	}
	for _, problem := range below {
		p.addf(path+"."+problem.Path, "%s", problem.Message)
	}
}

func (p Problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}
