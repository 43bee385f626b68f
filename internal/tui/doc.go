// Package tui is the console: what an incident commander looks at and types
// into at 3am. It draws incident.Snapshot and turns keys into asks; every
// permission, signature and side effect lies behind Desk.
//
// Rules of this interface, which the code below obeys:
//
//   - Calm by default. A frame without trouble has no colour. What is abnormal
//     has a colour, a glyph and a word, so nothing is lost without colour.
//   - Fleet, mode, commander and lease, UTC time, policy and log head stand in
//     every frame. A mode other than LIVE changes the edges of every line.
//   - Every number has an age. What is old says so; what is not known is "?",
//     never zero and never the last good value.
//   - Clock and ages are in minutes; seconds appear only while something counts
//     down, because every second on screen is bytes over a slow line.
//   - The same key does the same thing everywhere. A key that cannot act says
//     why. Escape always backs out. Help is printed from the key map itself.
//   - Enter never gives an order by itself: a dialog starts on Cancel and takes
//     no key before the keyboard has been quiet for 425 ms. Tightening is one
//     deliberate key; everything else is spelled out, by hand: what is pasted,
//     repeated or typed ahead is not an answer.
//   - A late answer carries the question it belongs to, and is dropped when that
//     question has gone.
//   - The first frame waits for nothing. No view does I/O.
//
// May import: incident, decisions, policy, directive, model, untrusted, the types
// of runbooks and runbooks/run, Bubble Tea and Lip Gloss (here and nowhere else). Must never judge whether an act is
// allowed, hold a key, read a file, or call Desk or Runs outside a tea.Cmd.
package tui
