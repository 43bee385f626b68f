package main

import (
	"fmt"
	"io"
	"strings"
)

// command is one way to run the program.
type command struct{ synopsis, does string }

func commands() []command {
	return []command{
		{"ic-agent [flags]", "Keep what this host validly knows, and answer the services beside it. It runs until it is told to stop."},
		{"ic-agent exec [flags] -- CMD [ARGS]", "Run a program under the directives of its environment, with an agent of its own beside it: IC_DIRECTIVES is verified by this host's policy, and what is in force stands in the program's environment (IC_TIER_<SERVICE>, IC_OFF_<FEATURE>) and at the address in IC_AGENT. Signals are handed on, and its exit code is ours."},
		{"ic-agent version [--json]", "Print the version."},
		{"ic-agent man", "Print this page for man."},
	}
}

// exit is one exit code.
type exit struct{ code, means string }

func exits() []exit {
	return []exit{
		{"0", "stopped in order"},
		{"1", "failed"},
		{"2", "wrong configuration or arguments; nothing was started"},
		{"126, 127", "exec: the program cannot be run, or is not there"},
		{"128+N", "exec: signal N ended the program; any other code is its own"},
	}
}

// writeHelp is for a terminal.
func writeHelp(w io.Writer) {
	fmt.Fprintln(w, "ic-agent is the host's part of ic. It verifies and answers; it has no authority.")
	for _, c := range commands() {
		fmt.Fprintf(w, "\n  %s\n%s", c.synopsis, wrapped(c.does, "      "))
	}
	fmt.Fprintf(w, "\nFlags. Each can also stand in a configuration file and in the environment; a\nflag wins.\n\n  -config FILE (%s)\n      %s\n", configEnv, configHelp)
	for _, s := range settings() {
		fmt.Fprintf(w, "  -%s (%s, %s)\n%s", s.flag(), s.env(), s.key, wrapped(s.help, "      "))
	}
	fmt.Fprint(w, "\nExit codes\n\n")
	for _, e := range exits() {
		fmt.Fprintf(w, "  %-9s %s\n", e.code, e.means)
	}
}

// helpWidth is that of the narrowest usual terminal.
const helpWidth = 80

// wrapped breaks text into lines with an indent.
func wrapped(text, indent string) string {
	var out strings.Builder
	line := indent
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > helpWidth && line != indent {
			out.WriteString(line + "\n")
			line = indent
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	return out.String() + line + "\n"
}

// writeMan is the same as a page of section 8.
func writeMan(w io.Writer, version string) {
	fmt.Fprintf(w, ".TH IC-AGENT 8 \"\" %q %q\n.SH NAME\nic-agent \\- what a host validly knows, and who asks it\n.SH SYNOPSIS\n", "ic "+version, "ic")
	for _, c := range commands() {
		fmt.Fprintf(w, ".B %s\n.br\n", roff(c.synopsis))
	}
	fmt.Fprint(w, ".SH DESCRIPTION\n")
	for _, c := range commands() {
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roff(c.synopsis), roff(c.does))
	}
	fmt.Fprintf(w, ".SH OPTIONS\nEach can also stand in a configuration file and in the environment; a flag wins.\n.TP\n.B \\-config FILE\n%s (%s)\n", roff(configHelp), configEnv)
	for _, s := range settings() {
		fmt.Fprintf(w, ".TP\n.B %s\n%s (%s; %s)\n", roff("-"+s.flag()), roff(s.help), roff(s.env()), roff(s.key))
	}
	fmt.Fprint(w, ".SH EXIT STATUS\n")
	for _, e := range exits() {
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roff(e.code), roff(e.means))
	}
}

// roff keeps what has a meaning there from having it.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
