// SPDX-License-Identifier: Apache-2.0
// Signals that end the engine. They only leave a note: the engine first takes back what it changed on the machine, as
// at the end of its input.
#pragma once

namespace dutperf {

// From now on SIGTERM, SIGINT and SIGHUP leave the note instead of ending the process. Those that are ignored stay so.
void note_ending_signals();

// Whether one arrived.
bool ending();

// A file descriptor that is readable once one arrived, for poll(2); -1 before note_ending_signals().
int ending_event();

// To be called between the steps of what takes long, and before each that changes the machine. Throws Error "internal".
void require_not_ending();

// Ends the process by the signal that arrived, so that its exit status says so. Returns if none did.
void end_by_signal();

}  // namespace dutperf
