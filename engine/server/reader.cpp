// SPDX-License-Identifier: Apache-2.0
#include "server/reader.hpp"

#include <algorithm>

namespace dutperf {

using nlohmann::json;

namespace {

bool is_in(const json& value, Reader::Range range) {
    return value.is_number_unsigned() && value.get<std::uint64_t>() >= range.min &&
           value.get<std::uint64_t>() <= range.max;
}

}  // namespace

Reader::Reader(const json& value, std::string path) : value_(value), path_(std::move(path)) {
    if (!value.is_object())
        throw Error("bad_request", (path_.empty() ? "the request" : path_) + " must be an object", path_);
}

void Reader::fail(const std::string& name, const std::string& message) const {
    throw Error("bad_request", path_of(name) + " " + message, path_of(name));
}

const json& Reader::member(const std::string& name) {
    read_.insert(name);
    const auto found = value_.find(name);
    if (found == value_.end()) fail(name, "is missing");
    return *found;
}

std::uint64_t Reader::integer(const std::string& name, Range range) {
    const json& found = member(name);
    if (!found.is_number_integer()) fail(name, "must be an integer");
    const bool negative = !found.is_number_unsigned() && found.get<std::int64_t>() < 0;
    const bool fits = !negative && found.get<std::uint64_t>() >= range.min && found.get<std::uint64_t>() <= range.max;
    if (!fits)
        fail(name, "must be between " + std::to_string(range.min) + " and " + std::to_string(range.max) + ", not " +
                       found.dump());
    return found.get<std::uint64_t>();
}

std::uint64_t Reader::integer(const std::string& name, Range range, std::uint64_t otherwise) {
    return has(name) ? integer(name, range) : otherwise;
}

std::int64_t Reader::signed_integer(const std::string& name, std::int64_t most) {
    if (!has(name)) return 0;
    const json& found = member(name);
    const bool fits = found.is_number_unsigned() ? found.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                                                 : found.is_number_integer() && found.get<std::int64_t>() >= -most &&
                                                       found.get<std::int64_t>() <= most;
    if (!fits) fail(name, "must be an integer from -" + std::to_string(most) + " to " + std::to_string(most));
    return found.get<std::int64_t>();
}

std::string Reader::text(const std::string& name) {
    const json& found = member(name);
    if (!found.is_string()) fail(name, "must be a string");
    auto read = found.get<std::string>();
    if (read.find('\0') != std::string::npos) fail(name, "must not have a NUL in it");  // C functions would end there
    return read;
}

std::string Reader::text(const std::string& name, const std::vector<std::string>& choices,
                         const std::string& otherwise) {
    std::string found = has(name) ? text(name) : otherwise;
    if (std::ranges::find(choices, found) != choices.end()) return found;
    std::string all;
    for (const std::string& choice : choices) all += (all.empty() ? "" : ", ") + choice;
    fail(name, "must be one of " + all + ", not '" + found + "'");
}

std::size_t Reader::index_of_text(const std::string& name, const std::vector<std::string>& choices) {
    const auto chosen = std::ranges::find(choices, text(name, choices, choices.front()));
    return static_cast<std::size_t>(chosen - choices.begin());
}

bool Reader::flag(const std::string& name) {
    if (!has(name)) return false;
    const json& found = member(name);
    if (!found.is_boolean()) fail(name, "must be true or false");
    return found.get<bool>();
}

std::optional<std::string> Reader::optional_text(const std::string& name) {
    return has(name) ? std::optional(text(name)) : std::nullopt;
}

std::optional<Mac> Reader::mac(const std::string& name) {
    const auto found = optional_text(name);
    if (!found) return std::nullopt;
    const auto address = parse_mac(*found);
    if (!address) fail(name, "must be a MAC address such as 02:00:00:00:00:01, not '" + *found + "'");
    return address;
}

std::optional<Ipv4> Reader::ipv4(const std::string& name) {
    const auto found = optional_text(name);
    if (!found) return std::nullopt;
    const auto address = parse_ipv4(*found);
    if (!address) fail(name, "must be an IPv4 address, not '" + *found + "'");
    return address;
}

std::optional<Ipv6> Reader::ipv6(const std::string& name) {
    const auto found = optional_text(name);
    if (!found) return std::nullopt;
    const auto address = parse_ipv6(*found);
    if (!address) fail(name, "must be an IPv6 address, not '" + *found + "'");
    return address;
}

std::optional<std::vector<unsigned>> Reader::cores(const std::string& name) {
    if (!has(name)) return std::nullopt;
    const json& found = member(name);
    const bool cores = found.is_array() && std::ranges::all_of(found, [](const json& one) {
                           return one.is_number_unsigned() && one.get<std::uint64_t>() < 1024;
                       });
    if (!cores) fail(name, "must be a list of core numbers");
    auto list = found.get<std::vector<unsigned>>();
    if (std::set<unsigned>(list.begin(), list.end()).size() != list.size()) fail(name, "names a core twice");
    return list;
}

std::vector<std::string> Reader::texts(const std::string& name) {
    if (!has(name)) return {};
    const json& found = member(name);
    if (!found.is_array() || !std::ranges::all_of(found, [](const json& one) { return one.is_string(); }))
        fail(name, "must be a list of strings");
    return found.get<std::vector<std::string>>();
}

std::vector<std::uint64_t> Reader::integers(const std::string& name, Range range) {
    if (!has(name)) return {};
    const json& found = member(name);
    if (!found.is_array() || !std::ranges::all_of(found, [&](const json& one) { return is_in(one, range); }))
        fail(name, "must be a list of integers from " + std::to_string(range.min) + " to " + std::to_string(range.max));
    return found.get<std::vector<std::uint64_t>>();
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> Reader::pairs(const std::string& name, Range range) {
    const json& found = member(name);
    const auto is_pair = [&](const json& one) {
        return one.is_array() && one.size() == 2 && is_in(one[0], range) && is_in(one[1], range);
    };
    if (!found.is_array() || !std::ranges::all_of(found, is_pair))
        fail(name, "must be a list of pairs of integers from " + std::to_string(range.min) + " to " +
                       std::to_string(range.max));
    return found.get<std::vector<std::pair<std::uint64_t, std::uint64_t>>>();
}

std::vector<Reader> Reader::objects(const std::string& name) {
    if (!has(name)) return {};
    const json& found = member(name);
    if (!found.is_array()) fail(name, "must be a list");
    std::vector<Reader> all;
    for (std::size_t i = 0; i < found.size(); ++i) all.emplace_back(found[i], path_of(name) + "." + std::to_string(i));
    return all;
}

void Reader::require_entries(const std::string& name, Range range) const {
    if (!has(name)) return;
    if (const std::size_t entries = value_.at(name).size(); entries < range.min || entries > range.max)
        fail(name, "must have " + std::to_string(range.min) + " to " + std::to_string(range.max) + " entries, not " +
                       std::to_string(entries));
}

Reader Reader::object(const std::string& name) { return {member(name), path_of(name)}; }

std::optional<Reader> Reader::optional_object(const std::string& name) {
    return has(name) ? std::optional(object(name)) : std::nullopt;
}

void Reader::finish() const {
    for (const auto& [name, value] : value_.items()) {
        if (!read_.contains(name)) fail(name, "is unknown");
    }
}

}  // namespace dutperf
