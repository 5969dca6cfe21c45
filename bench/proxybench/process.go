package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/go-json-experiment/json"
)

// process is this program running in another role.
type process struct {
	role    string
	address string
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// start starts a process. Target is the upstream's address.
func start(ctx context.Context, role, target string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the own program: %w", err)
	}
	p := &process{role: role, command: exec.CommandContext(ctx, self)} //nolint:gosec // it is this program
	p.command.Env = append(os.Environ(), roleVariable+"="+role, targetVariable+"=http://"+target)
	p.command.Stderr = os.Stderr
	if p.in, err = p.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("%s: %w", role, err)
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", role, err)
	}
	p.out = bufio.NewReader(out)
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", role, err)
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s did not start: %w", role, err), p.stop())
	}
	p.address = strings.TrimSpace(line)
	return p, nil
}

// ask sends a command and returns the reply.
func (p *process) ask(command string) (reply, error) {
	if _, err := io.WriteString(p.in, command+"\n"); err != nil {
		return reply{}, fmt.Errorf("%s: %s: %w", p.role, command, err)
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return reply{}, fmt.Errorf("%s: %s: %w", p.role, command, err)
	}
	var r reply
	if err := json.Unmarshal(line, &r); err != nil {
		return reply{}, fmt.Errorf("%s: %s: %w", p.role, command, err)
	}
	if r.Error != "" {
		return reply{}, fmt.Errorf("%s: %s: %s", p.role, command, r.Error)
	}
	return r, nil
}

// stop ends the process and waits for it.
func (p *process) stop() error {
	_ = p.in.Close()
	if err := p.command.Wait(); err != nil {
		return fmt.Errorf("%s: %w", p.role, err)
	}
	return nil
}
