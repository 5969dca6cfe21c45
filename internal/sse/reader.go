// Package sse reads server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html) as language
// model servers send them: thousands of small events, now and then one of many megabytes, and long silences that are
// filled with comments and blank lines.
//
// Lines are framed here, each byte being looked at once, and comments, blank lines and fields other than data and event
// never stay in memory. An event with one data line is taken as it is; one with several is interpreted by
// github.com/tmaxmax/go-sse, whose own scanner would look at all that has come of an event at each read, and would keep
// comments until an event ends. One rule differs from the specification: a clean end of the stream ends the last line and
// the last event, as some servers leave the closing blank line out.
package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/tmaxmax/go-sse"
)

// Event is one event with data. Those without are dropped, as the specification demands; so are those whose data is
// empty, as they mean nothing on any interface of a language model.
type Event struct {
	Type string // the "event" field; empty when there is none
	Data string // the "data" fields, joined by LF
}

// View is an event whose data lies in the buffer of its Reader: it is overwritten by the next call.
type View struct {
	Type string
	Data []byte
}

// DefaultMaxEvent is the size up to which an event is read unless a Reader is told otherwise.
const DefaultMaxEvent = 32 << 20

// ErrTooLarge is the error of a Reader that met an event above its limit.
var ErrTooLarge = errors.New("event too large")

const (
	minBuffer = 1 << 10  // the buffer of a stream whose events come one by one
	maxBurst  = 32 << 10 // that of a burst of small events; a larger one is given back as soon as its event is done
	maxSmall  = 16       // that of a burst is given back after so many reads that brought little

	maxEmptyReads = 100
)

const byteOrderMark = "\xEF\xBB\xBF"

// Reader reads events from a body. Next and Buffered must be called by one goroutine at a time; Close may be called at
// any time by any.
type Reader struct {
	body io.ReadCloser
	max  int

	// The buffer holds, in this order: the kept lines of the event that is being collected (start to kept), the line
	// that is being read (line to filled), and lines not yet looked at. Line ends are looked for from next on.
	buf                     []byte
	start, kept, line, next int
	filled                  int
	lines                   int // how many are kept
	lf, cr                  finder
	small                   int  // how many reads in a row have brought little
	full                    bool // the last one filled the buffer
	skipLF                  bool // the last line ended in CR: a LF that follows belongs to it
	skipLine                bool // the line that is being read means nothing
	begun                   bool // the place of a byte order mark is passed
	err                     error
	lastType                string

	ahead    View
	hasAhead bool

	closing sync.Once
	closed  error
}

// NewReader returns a Reader over body, which it closes. maxEvent bounds the size of an event; 0 means DefaultMaxEvent.
func NewReader(body io.ReadCloser, maxEvent int) *Reader {
	if maxEvent <= 0 {
		maxEvent = DefaultMaxEvent
	}
	return &Reader{body: body, max: maxEvent, lf: finder{char: '\n'}, cr: finder{char: '\r'}}
}

// Next returns the next event. It returns io.EOF after a clean end, ErrTooLarge for an event above the limit, and
// otherwise the body's own error. After an error it keeps returning that error.
func (r *Reader) Next() (Event, error) {
	v, err := r.NextView()
	return Event{Type: v.Type, Data: string(v.Data)}, err
}

// NextView is like Next, for those who do not keep the data as it is.
func (r *Reader) NextView() (View, error) {
	if r.hasAhead {
		r.hasAhead = false
		return r.ahead, nil
	}
	for {
		if event, ok := r.scan(); ok {
			return event, nil
		}
		if r.err != nil {
			r.Release()
			return View{}, r.err
		}
		r.fill()
	}
}

// Buffered reports whether Next will return without reading from the body. It keeps views valid.
func (r *Reader) Buffered() bool {
	if !r.hasAhead {
		r.ahead, r.hasAhead = r.scan()
	}
	return r.hasAhead || r.err != nil
}

// Release gives the buffer back, when nothing more will be read. What has been read ahead is lost.
func (r *Reader) Release() {
	giveBack(r.buf[:cap(r.buf)])
	r.buf, r.start, r.kept, r.line, r.next, r.filled = nil, 0, 0, 0, 0, 0
	r.ahead, r.hasAhead = View{}, false
	if r.err == nil {
		r.err = io.EOF
	}
}

// Pending returns how many bytes are in memory that no event has been made of yet.
func (r *Reader) Pending() int { return r.used() }

// Close closes the body, which makes a blocked Next return.
func (r *Reader) Close() error {
	r.closing.Do(func() { r.closed = r.body.Close() })
	return r.closed
}

// scan returns the next event that is in the buffer as a whole.
func (r *Reader) scan() (View, bool) {
	for {
		end, ok := r.lineEnd()
		if !ok {
			return View{}, false
		}
		line, skip := r.buf[r.line:end], r.skipLine
		r.skipLine = false
		switch {
		case skip:
		case len(line) == 0 && r.kept-r.start > r.max:
			r.tooLarge()
			return View{}, false
		case len(line) == 0 && r.kept > r.start:
			event, ok := r.parse(r.buf[r.start:r.kept])
			if r.kept = r.start; ok {
				r.line, r.next = end+1, end+1
				return event, true
			}
		case !isDataOrEvent(line):
		case r.kept == r.start:
			r.start, r.kept, r.lines = r.line, end+1, 1
			if next := end + 1; next < r.filled && r.buf[end] == '\n' && r.buf[next] == '\n' && next-r.start <= r.max {
				end = next // the usual event: one line and a blank one
				event, ok := r.parse(r.buf[r.start:r.kept])
				if r.kept = r.start; ok {
					r.line, r.next = end+1, end+1
					return event, true
				}
			}
		default:
			r.lines++
			r.kept += copy(r.buf[r.kept:], r.buf[r.line:end+1])
		}
		r.line, r.next = end+1, end+1
	}
}

// lineEnd returns the position of the character that ends the current line; false as long as it is not there. A LF
// after a CR is skipped as the next line begins, as it may arrive much later.
func (r *Reader) lineEnd() (int, bool) {
	if !r.begin() {
		return 0, false
	}
	if r.skipLF && r.line < r.filled {
		if r.skipLF = false; r.buf[r.line] == '\n' {
			r.line, r.next = r.line+1, r.line+1
		}
	}
	end := min(r.lf.find(r.buf[:r.filled], r.next), r.cr.find(r.buf[:r.filled], r.next))
	if end < r.filled {
		r.skipLF = r.buf[end] == '\r'
		return end, true
	}
	r.next = end
	if r.skipLine = r.skipLine || r.line < end && !mayMatter(r.buf[r.line]); r.skipLine {
		r.line = end
	}
	return 0, false
}

// begin skips a byte order mark at the very start. It is false as long as what is there may become one.
func (r *Reader) begin() bool {
	if r.begun {
		return true
	}
	head := string(r.buf[:min(r.filled, len(byteOrderMark))])
	if head == byteOrderMark {
		r.line, r.next = len(head), len(head)
	} else if strings.HasPrefix(byteOrderMark, head) && r.err == nil {
		return false
	}
	r.begun = true
	return true
}

// fill reads once. A clean end closes the last line and the last event.
func (r *Reader) fill() {
	if r.used() > r.max {
		r.tooLarge()
		return
	}
	for range maxEmptyReads {
		r.makeRoom()
		free := r.buf[r.filled:]
		n, err := r.body.Read(free)
		r.filled += n
		if r.full = n == len(free); n < minBuffer/2 {
			r.small++
		} else {
			r.small = 0
		}
		if errors.Is(err, io.EOF) {
			r.buf = append(r.buf[:r.filled], "\n\n"...)
			r.filled += 2
		}
		if r.err = err; err != nil || n > 0 {
			return
		}
	}
	r.err = io.ErrNoProgress
}

func (r *Reader) tooLarge() { r.err = fmt.Errorf("%w: more than %d bytes", ErrTooLarge, r.max) }

// used returns the size of the event that is being collected.
func (r *Reader) used() int { return (r.kept - r.start) + (r.filled - r.line) }

// makeRoom sees to it that something can be read: it moves what is there to the front, and lets the buffer grow with a
// large event or a burst of events, and shrink after it.
func (r *Reader) makeRoom() {
	used, size := r.used(), len(r.buf)
	switch {
	case size == 0:
		size = minBuffer
	case used <= minBuffer/2 && (size > maxBurst || size > minBuffer && r.small >= maxSmall):
		size = minBuffer
	case r.full && size < maxBurst:
		size = maxBurst
	case r.full && used > size/2:
		size *= 2
	case r.full, used == 0, used <= size/2 && size-r.filled < size/4:
	default:
		return
	}
	r.full = false
	buf := r.buf
	if size != len(buf) {
		buf = takeBuffer(size)
	}
	kept := copy(buf, r.buf[r.start:r.kept])
	filled := kept + copy(buf[kept:], r.buf[r.line:r.filled])
	shift := r.line - kept
	if size != len(r.buf) {
		giveBack(r.buf)
	}
	r.buf, r.start, r.kept, r.line, r.next, r.filled = buf, 0, kept, kept, r.next-shift, filled
	r.lf.at, r.cr.at = max(r.lf.at-shift, 0), max(r.cr.at-shift, 0)
}

// bursts holds the buffers of bursts. A stream has one only as long as its events come fast.
var bursts = sync.Pool{New: func() any { return new([maxBurst]byte) }} //nolint:gochecknoglobals // see BenchmarkReader

func takeBuffer(size int) []byte {
	if size == maxBurst {
		if b, ok := bursts.Get().(*[maxBurst]byte); ok {
			return b[:]
		}
	}
	return make([]byte, size)
}

func giveBack(buf []byte) {
	if len(buf) == maxBurst {
		bursts.Put((*[maxBurst]byte)(buf))
	}
}

// finder looks for a character and remembers how far it has looked, so that no byte is looked at twice.
type finder struct {
	char byte
	at   int // there is none between the last position asked for and here
}

// find returns the position of the first such character in b at or after from, or the length of b.
func (f *finder) find(b []byte, from int) int {
	f.at = max(f.at, from)
	if f.at < len(b) && b[f.at] != f.char {
		if i := bytes.IndexByte(b[f.at:], f.char); i >= 0 {
			f.at += i
		} else {
			f.at = len(b)
		}
	}
	return min(f.at, len(b))
}

// mayMatter reports whether a line that begins so may be a data or event field. Comments and other fields may not.
func mayMatter(first byte) bool { return first == 'd' || first == 'e' }

func isDataOrEvent(line []byte) bool {
	name, _, _ := bytes.Cut(line[:min(len(line), len("event:"))], []byte(":"))
	return string(name) == "data" || string(name) == "event"
}

// parse interprets the data and event lines of one event, each with the one character that ends it.
func (r *Reader) parse(lines []byte) (View, bool) {
	if n := len("data:"); r.lines == 1 && len(lines) > n && string(lines[:n]) == "data:" {
		data := value(lines[n : len(lines)-1])
		return View{Data: data}, len(data) > 0
	}
	var event View
	hasData := false
	for rest := lines; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 || bytes.IndexByte(rest[:end], '\r') >= 0 {
			end = bytes.IndexByte(rest, '\r')
		}
		_, text, _ := bytes.Cut(rest[:end], []byte(":"))
		switch {
		case rest[0] == 'e':
			event.Type = r.intern(value(text))
		case !hasData:
			event.Data, hasData = value(text), true
		default:
			return parseWhole(lines)
		}
		rest = rest[end+1:]
	}
	return event, len(event.Data) > 0
}

// value returns what stands behind a field's colon without the one space that may be there.
func value(text []byte) []byte {
	if len(text) > 0 && text[0] == ' ' {
		return text[1:]
	}
	return text
}

// intern returns b as a string. Most events of a stream have the type of the one before.
func (r *Reader) intern(b []byte) string {
	if string(b) != r.lastType {
		r.lastType = string(b)
	}
	return r.lastType
}

// parseWhole has go-sse interpret an event.
func parseWhole(lines []byte) (View, bool) {
	// Two more line ends, as the first one may be the second half of a CR LF.
	whole := io.MultiReader(bytes.NewReader(lines), strings.NewReader("\n\n"))
	for event, err := range sse.Read(whole, &sse.ReadConfig{MaxEventSize: len(lines) + 64}) {
		return View{Type: event.Type, Data: []byte(event.Data)}, err == nil && event.Data != ""
	}
	return View{}, false
}
