// SPDX-License-Identifier: Apache-2.0
// What a trial asks a DNS64 server (RFC 8219 section 9), and which answers are right (RFC 6147). All of it is a
// function of the query's number.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "dns/datagram.hpp"
#include "dns/embedding.hpp"
#include "dns/test_name.hpp"

namespace dutperf::dns {

// m of n numbers, spread evenly.
struct EvenShare {
    std::uint64_t n = 1, m = 0;

    // How many of the first k.
    [[nodiscard]] std::uint64_t among(std::uint64_t k) const { return k * m / n; }
    [[nodiscard]] bool has(std::uint64_t k) const { return m != 0 && among(k + 1) > among(k); }
};

// Queries for names that an earlier trial asked for, which the DUT may have in its cache.
struct CachedNames {
    std::uint64_t names = 1;
    EvenShare share;
    std::uint16_t trial = 0;
    std::uint64_t first = 0;  // of names of addresses, instead of the trial: the number of the first one
};

// Names of the addresses of a network, which another server knows.
struct AddressNames {
    // Bursts of queries belong to each slice in turn, and each slice counts through names of its own.
    struct Slices {
        std::uint64_t count = 1, burst = 1, names = 0;
    };

    std::uint32_t network = 0;  // its first address
    std::uint64_t size = 1;     // its addresses
    std::uint64_t first = 0;    // the number of the trial's first name
    std::optional<Slices> slices;

    // The numbers begin again behind the last address.
    [[nodiscard]] Ipv4 address(std::uint64_t number) const {
        Ipv4 made{};
        store_be32(made.data(), network + static_cast<std::uint32_t>(number % size));
        return made;
    }
    // The number of the trial's name `i`.
    [[nodiscard]] std::uint64_t number(std::uint64_t i) const {
        if (!slices) return first + i;
        const std::uint64_t burst = i / slices->burst;
        return first + burst % slices->count * slices->names + burst / slices->count * slices->burst +
               i % slices->burst;
    }
};

inline constexpr std::uint64_t kIds = 65536;

struct Questions {
    Ipv6 source{}, destination{};
    std::uint16_t first_port = 10000, ports = 4096, destination_port = kServerPort;
    Zone zone;
    Embedding prefix;
    EvenShare aaaa;  // names that have an AAAA record
    std::optional<CachedNames> cached;
    std::optional<AddressNames> addresses;  // absent: the names are the trial's own

    [[nodiscard]] std::uint64_t most() const { return ports * kIds; }
    [[nodiscard]] std::size_t label_size() const { return addresses ? kAddressLabelSize : kTestLabelSize; }
    [[nodiscard]] std::size_t message_size() const;
    [[nodiscard]] std::size_t frame_length() const { return datagram_payload_at(true) + message_size(); }
};

// The records of a name.
struct NameRecords {
    Ipv4 a{};
    std::optional<Ipv6> aaaa;
};

// The questions of one trial.
struct TrialQuestions : Questions {
    std::uint16_t run = 0, trial = 0, first_id = 0;
    std::uint64_t count = 0;

    [[nodiscard]] std::uint16_t port_of(std::uint64_t k) const {
        return static_cast<std::uint16_t>(first_port + k % ports);
    }
    [[nodiscard]] std::uint16_t id_of(std::uint64_t k) const {
        return static_cast<std::uint16_t>(k / ports + first_id);
    }
    // The number of the query with this port and ID, if the trial may ask so many.
    [[nodiscard]] std::optional<std::uint64_t> number_of(std::uint16_t port, std::uint16_t id) const {
        const std::uint64_t k = std::uint64_t{static_cast<std::uint16_t>(id - first_id)} * ports + (port - first_port);
        return port >= first_port && port - first_port < ports && k < count ? std::optional(k) : std::nullopt;
    }
    // Which of the cached names a query asks for, or which of the trial's own.
    struct Place {
        bool is_cached = false;
        std::uint64_t number = 0;
    };
    [[nodiscard]] Place place_of(std::uint64_t k) const {
        if (!cached) return {.number = k};
        const std::uint64_t before = cached->share.among(k);
        return cached->share.has(k) ? Place{.is_cached = true, .number = before % cached->names}
                                    : Place{.number = k - before};
    }
    // Without `addresses`.
    [[nodiscard]] TestName name_of(std::uint64_t k) const {
        const Place place = place_of(k);
        return {.has_aaaa = aaaa.has(place.number),
                .run = run,
                .trial = place.is_cached ? cached->trial : trial,
                .number = place.number};
    }
    // With `addresses`.
    [[nodiscard]] Ipv4 address_of(std::uint64_t k) const {
        const Place place = place_of(k);
        return addresses->address(place.is_cached ? cached->first + place.number : addresses->number(place.number));
    }
    // The first label of a query's name.
    void write_label(std::uint64_t k, std::uint8_t* to) const {
        addresses ? write_address_label(address_of(k), to) : write_test_label(name_of(k), to);
    }
    [[nodiscard]] bool is_label_of(std::uint64_t k, Bytes label) const;
    // The records that its name has.
    [[nodiscard]] NameRecords records_of(std::uint64_t k) const;
};

// Why an answer is not the right one.
enum class Wrong : std::uint8_t {
    nodata,
    nxdomain,
    servfail,
    refused,
    other_rcode,
    wrong_prefix,   // the right IPv4 address
    wrong_address,  // any other AAAA record
    truncated,
    malformed,
    unexpected,  // no query that was sent
    count
};
inline constexpr std::size_t kWrongKinds = static_cast<std::size_t>(Wrong::count);
inline constexpr std::array<const char*, kWrongKinds> kWrongNames{
    "nodata",       "nxdomain",      "servfail",  "refused",   "other_rcode",
    "wrong_prefix", "wrong_address", "truncated", "malformed", "unexpected"};

// The query that a message answers, and what is wrong with it; without that it is the right answer.
struct Verdict {
    std::uint64_t number = 0;
    std::optional<Wrong> wrong;
};

// `port`: where it was sent to. Whether the query was sent is not known here.
Verdict check_answer(const TrialQuestions& questions, std::uint16_t port, Bytes message);

// The frames of queries: a template, and what differs from one query to the next.
class QueryFrame {
public:
    explicit QueryFrame(const TrialQuestions& questions, const Mac& source, const Mac& destination);

    [[nodiscard]] const std::uint8_t* data() const { return bytes_.data(); }
    [[nodiscard]] std::uint16_t length() const { return length_; }
    // Makes query k of a frame that holds the template, or another query.
    void write(std::uint64_t k, std::uint8_t* frame) const;

private:
    std::array<std::uint8_t, 192> bytes_{};
    std::uint16_t length_;
    std::size_t labelled_;  // the first label, with the byte of its size
    TrialQuestions questions_;
    std::uint64_t fixed_sum_ = 0;  // of what the UDP checksum covers and no query changes
};

}  // namespace dutperf::dns
