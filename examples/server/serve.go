package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/examples/openaihttp"
)

const (
	defaultDrain = 30 * time.Second
	lastWrites   = 5 * time.Second // for what has been answered to reach the clients, when the drain time is over
)

// setup is what the server is going to serve, and where.
type setup struct {
	loaded

	address string
	handler []openaihttp.Option
	key     *ownKey // nil: the configuration has keys, or there is none at all
}

// prepare makes the setup of the configuration file, or of what is found without one.
func prepare(ctx context.Context, o options, stderr io.Writer, sys system) (*setup, error) {
	s := &setup{address: o.listen}
	if err := s.load(ctx, o, stderr, sys); err != nil {
		return nil, err
	}
	if s.address == "" {
		s.address = s.config.Listen
	}
	if s.address == "" {
		s.address = defaultListen
	}
	var err error
	if s.handler, err = openaihttp.FromConfig(s.config); err != nil {
		closeNow(s.client)
		return nil, err
	}
	s.handler = append(s.handler, openaihttp.WithLogger(s.logger))
	if s.key != nil {
		s.handler = append(s.handler, s.key.option())
	}
	if len(s.config.Master.Keys)+len(s.config.Keys) > 0 || s.key != nil {
		return s, nil
	}
	if !o.withoutKeys && !isLoopback(s.address) {
		closeNow(s.client)
		return nil, s.exposed(o)
	}
	s.notes = append(s.notes, "no key is configured: every call is refused with 503 until there is one; add master.keys or keys, "+
		"or set "+keyVariable)
	return s, nil
}

// load fills in the configuration and what follows from it.
func (s *setup) load(ctx context.Context, o options, stderr io.Writer, sys system) error {
	key, given := keyFromEnvironment(sys)
	if o.config == "" {
		s.config, s.notes = detect(ctx, sys)
		s.logger = newLogger(s.config.Log, stderr)
		if !given {
			key = newKey()
		}
		s.key = &key
		var err error
		s.client, err = newClient(s.config, s.logger)
		return err
	}
	l, err := load(o.config, stderr)
	if err != nil {
		return err
	}
	s.loaded = *l
	if given && len(s.config.Master.Keys)+len(s.config.Keys) == 0 {
		s.key = &key
		s.notes = append(s.notes, o.config+" has no keys: the gateway's key is the one in "+keyVariable)
	}
	return nil
}

// exposed refuses an address that other machines can reach.
func (s *setup) exposed(o options) error {
	message := s.address + " can be reached from other machines, but no key is configured: add master.keys or keys, set " +
		keyVariable + ", or say -without-keys (every call is refused until there is a key)"
	if o.listen != "" {
		return fmt.Errorf("-listen: %s", message)
	}
	e := &fileError{file: o.config}
	e.add(s.document, gateway.Problems{{Path: "listen", Message: message}})
	return e
}

// serve runs the server until ctx ends or a signal comes, and then drains. A second signal ends the process at once.
func serve(ctx context.Context, o options, stdout, stderr io.Writer, sys system) error {
	s, err := prepare(ctx, o, stderr, sys)
	if err != nil {
		return err
	}
	defer closeNow(s.client)
	ctx, release := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer release()
	listener, err := listen(ctx, s.address, s.config.Server)
	if err != nil {
		return err
	}
	for _, note := range s.notes {
		fmt.Fprintln(stdout, note)
	}
	model := ""
	if len(s.config.Models) > 0 {
		model = s.config.Models[0].Alias
	}
	greet(stdout, baseURL(listener.Addr()), model, s.key)
	s.logger.InfoContext(ctx, "listening", "address", listener.Addr().String(), "aliases", len(s.config.Models))
	drain := defaultDrain
	if d := s.config.Server.Drain; d != nil {
		drain = time.Duration(*d)
	}
	// From the first signal on nobody catches signals: the next one has its usual effect.
	return serveHTTP(ctx, release, listener, s.client, openaihttp.New(s.client, s.handler...), drain, s.logger)
}

// serveHTTP serves until ctx ends. It calls draining, and from then on is not ready and refuses new calls; those in flight
// go on for at most the drain time, and what is left of them is then told that it is over.
func serveHTTP(
	ctx context.Context, draining func(), listener net.Listener, client *gateway.Client, handler http.Handler,
	drain time.Duration, logger *slog.Logger,
) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	draining()
	end := time.Now().Add(drain)
	logger.InfoContext(ctx, "draining", "in_flight", client.Stats().InFlight, "limit", drain.String())
	drained, cancel := context.WithDeadline(context.WithoutCancel(ctx), end)
	defer cancel()
	// New connections are still taken, so that they are told to go elsewhere, until the calls in flight have ended.
	if err := client.Close(drained); err != nil {
		logger.WarnContext(ctx, "calls in flight were cut", "reason", err)
	}
	if last := time.Now().Add(lastWrites); last.After(end) {
		end = last
	}
	written, cancel := context.WithDeadline(context.WithoutCancel(ctx), end)
	defer cancel()
	if err := server.Shutdown(written); err != nil {
		_ = server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		logger.WarnContext(ctx, "the server did not close as it should", "error", err)
	}
	logger.InfoContext(ctx, "stopped")
	return nil
}
