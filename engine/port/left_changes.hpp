// SPDX-License-Identifier: Apache-2.0
// What an engine changes on a kernel interface and the kernel does not take back when the engine is killed. It is noted
// in the lock of the port before the change, and the next engine that gets the lock takes it back.
#pragma once

#include <string>
#include <vector>

namespace dutperf {

// A note is a line. The first is of the interface: after its name, what no other interface has, whatever its name, nor
// this one after the machine was started again.
std::string note_of_interface(const std::string& name);
// A feature (ethtool -k) that is about to be switched off.
std::string note_of_feature(const std::string& feature);
// The interface's promiscuous flag is set, and DPDK is about to clear it.
std::string note_of_promiscuous_flag();
// DPDK's AF_XDP driver is about to attach its program, and there is none.
std::string note_of_xdp_program();

// Takes back what the notes of an engine that is gone say. Returns what it took back, as clauses.
std::vector<std::string> take_back(const std::string& name, const std::vector<std::string>& notes);

}  // namespace dutperf
