// Package untrusted makes text from outside safe to show: host reports, answers
// of Prometheus, output of plugins and pipelines, errors that quote them.
//
// Text is cleaned where it comes in, once, and everything behind that may print
// it: on a terminal, in a log line, in a table. What a terminal would obey or a
// person would not see becomes a visible escape such as \x1b or \u202e; nothing
// is dropped silently. The escapes are for the eye and are not reversible: a
// backslash in the text stays a backslash. HTML and JSON need their own quoting
// on top.
//
// May import: the standard library. Must never be used to decide what text
// means: cleaning comes after parsing and before showing.
package untrusted
