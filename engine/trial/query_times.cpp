// SPDX-License-Identifier: Apache-2.0
#include "trial/query_times.hpp"

#include <unistd.h>

#include <algorithm>
#include <limits>

#include "trial/npy.hpp"

namespace dutperf {

namespace {

constexpr std::uint64_t kBlockRecords = 65536;
constexpr std::string_view kMembers = "('sent_ns', '<f8'), ('received_ns', '<f8'), ('answer', '|u1')";

struct __attribute__((packed)) Record {
    double sent_ns, received_ns;
    std::uint8_t answer;
};

}  // namespace

QueryTimes::QueryTimes(const std::string& path, const std::string& field, std::uint64_t queries)
    : file_(create_file(path, field)), sent_(queries), answered_(queries), kinds_(queries) {}

QueryTimes::~QueryTimes() { close(file_); }

RecordsWritten QueryTimes::write(Ticks start, std::uint64_t clock_hz) const {
    const auto since_start = [start, ns = 1e9 / static_cast<double>(clock_hz)](Ticks at) {
        return at == 0 ? std::numeric_limits<double>::quiet_NaN()
                       : static_cast<double>(static_cast<std::int64_t>(at - start)) * ns;
    };
    const std::string header = npy_header(kMembers, sent_.size());
    std::size_t bytes = 0;
    RecordsWritten outcome{.written = 0, .unwritten = sent_.size(), .error = {}};
    bool whole = write_all(file_, header.data(), header.size(), bytes);
    std::vector<Record> block;
    for (std::uint64_t k = 0; whole && k < sent_.size(); k += block.size()) {
        block.resize(std::min(kBlockRecords, sent_.size() - k));
        for (std::uint64_t i = 0; i < block.size(); ++i)
            block[i] = {since_start(sent_[k + i]), since_start(answered_[k + i]), kinds_[k + i]};
        bytes = 0;
        whole = write_all(file_, reinterpret_cast<const char*>(block.data()), block.size() * sizeof(Record), bytes);
        outcome.written += bytes / sizeof(Record);
    }
    if (!whole) outcome.error = system_message();
    outcome.unwritten -= outcome.written;
    return outcome;
}

}  // namespace dutperf
