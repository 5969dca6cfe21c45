package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/gatewright/gateway"
)

// newLogger returns the logger that a configuration describes: text on a terminal and JSON elsewhere, unless it says.
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
