package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/netutil"

	"github.com/gatewright/gateway"
	"github.com/gatewright/gateway/examples/openaihttp"
)

const (
	defaultListen         = "127.0.0.1:9000"
	defaultDrain          = 30 * time.Second
	defaultMaxConnections = 10_000
	keyVariable           = "GATEWAY_API_KEY"
)

// serve runs the server until ctx ends, and then drains.
func serve(ctx context.Context, o options, stdout, stderr io.Writer, sys system) error {
	var config gateway.Config
	var notes []string
	key := ""
	if o.config == "" {
		config, notes = detect(ctx, sys)
		if key = sys.getenv(keyVariable); key == "" {
			key = newKey()
		}
		config.Master.Keys = []gateway.SecretRef{gateway.NewSecretRef(key)}
	} else {
		l, err := load(o.config)
		if err != nil {
			return err
		}
		config, notes = l.config, l.notes
	}
	address := defaultListen
	if config.Listen != "" {
		address = config.Listen
	}
	if o.listen != "" {
		address = o.listen
	}
	keyless := len(config.Master.Keys)+len(config.Keys) == 0
	if keyless && !o.public && !isLoopback(address) {
		return fmt.Errorf("%s can be reached from other machines, but no key is configured: add master.keys or keys, "+
			"or say -open (every call is refused until there is a key)", address)
	}
	logger := newLogger(config.Log, stderr)
	client, err := build(o.config, config, gateway.WithLogger(logger), gateway.WithRecorder(gateway.LogRecorder(logger)))
	if err != nil {
		return err
	}
	defer closeNow(client)
	options, err := openaihttp.FromConfig(config)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("%s is in use by another program; choose another address with -listen HOST:PORT", address)
		}
		return fmt.Errorf("cannot listen on %s: %w; choose another address with -listen HOST:PORT", address, err)
	}
	for _, note := range notes {
		fmt.Fprintln(stdout, note)
	}
	if keyless {
		fmt.Fprintln(stdout, "no key is configured: every call is refused with 503 until master.keys or keys has one")
	}
	greet(stdout, listener.Addr(), key)
	logger.InfoContext(ctx, "listening", "address", listener.Addr().String(), "aliases", len(config.Models))
	return serveHTTP(ctx, limit(listener, config.Server), client, openaihttp.New(client, append(options, openaihttp.WithLogger(logger))...), config.Server, logger)
}

// serveHTTP serves until ctx ends. Then it is no longer ready, refuses new calls, lets those in flight finish within the
// drain time, tells the rest, and returns.
func serveHTTP(
	ctx context.Context, listener net.Listener, client *gateway.Client, handler http.Handler, c gateway.ServerConfig, logger *slog.Logger,
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
	drain := defaultDrain
	if c.Drain != nil {
		drain = time.Duration(*c.Drain)
	}
	logger.InfoContext(ctx, "draining", "in_flight", client.Stats().InFlight, "limit", drain.String())
	drained, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	// New connections are still taken, so that they are told to go elsewhere, until the calls in flight have ended.
	if err := client.Close(drained); err != nil {
		logger.WarnContext(ctx, "calls in flight were cut", "reason", err)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(last); err != nil {
		_ = server.Close()
	}
	logger.InfoContext(ctx, "stopped")
	return nil
}

// greet prints what a person needs for a first call.
func greet(w io.Writer, address net.Addr, key string) {
	base := "http://" + address.String()
	var text strings.Builder // printed at once
	fmt.Fprintf(&text, "\nGateway serves OpenAI's interface on %s/v1\n", base)
	if key != "" {
		fmt.Fprintf(&text, "Key for this run: %s\n\nTry:\n\n", key)
		for _, c := range []struct{ flag, stream string }{{"", ""}, {" -N", `"stream":true,`}} {
			fmt.Fprintf(&text, "curl%s %s/v1/chat/completions -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' "+
				"-d '{\"model\":\"demo\",%s\"messages\":[{\"role\":\"user\",\"content\":\"Hello, gateway\"}]}'\n\n",
				c.flag, base, key, c.stream)
		}
	}
	fmt.Fprint(w, text.String())
}

// newKey returns a random key.
func newKey() string {
	var raw [24]byte
	_, _ = rand.Read(raw[:]) // never fails
	return "gw-" + base64.RawURLEncoding.EncodeToString(raw[:])
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

func newLogger(c gateway.LogConfig, w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Level)) // validated; absent is info
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "text" || c.Format == "" && isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// closeNow closes a client that has no calls to wait for.
func closeNow(client *gateway.Client) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = client.Close(ctx)
}

// limit bounds how many connections are open at once; more wait to be accepted.
func limit(l net.Listener, c gateway.ServerConfig) net.Listener {
	most := defaultMaxConnections
	if c.MaxConnections != nil {
		most = *c.MaxConnections
	}
	if most == 0 {
		return l
	}
	return netutil.LimitListener(l, most)
}
