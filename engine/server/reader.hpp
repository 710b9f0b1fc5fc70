// SPDX-License-Identifier: Apache-2.0
// Reads the members of a request and checks their ranges. A missing, unknown or out-of-range member is an Error
// "bad_request" with its path.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frame/address.hpp"
#include "platform/error.hpp"

namespace dutperf {

class Reader {
public:
    // Throws unless `value` is an object.
    Reader(const nlohmann::json& value, std::string path);

    struct Range {
        std::uint64_t min, max;
    };

    std::uint64_t integer(const std::string& name, Range range);
    std::uint64_t integer(const std::string& name, Range range, std::uint64_t otherwise);
    // From -most to most; 0 if it is missing.
    std::int64_t signed_integer(const std::string& name, std::int64_t most);
    std::string text(const std::string& name);
    std::string text(const std::string& name, const std::vector<std::string>& choices, const std::string& otherwise);
    // The value of the text; that of the first choice if it is missing.
    template <class Value>
    Value choice(const std::string& name, const std::vector<std::pair<std::string, Value>>& choices) {
        std::vector<std::string> names;
        names.reserve(choices.size());
        for (const auto& [text, value] : choices) names.push_back(text);
        return choices[index_of_text(name, names)].second;
    }
    bool flag(const std::string& name);  // false if it is missing
    std::optional<Mac> mac(const std::string& name);
    std::optional<Ipv4> ipv4(const std::string& name);
    std::optional<Ipv6> ipv6(const std::string& name);
    std::optional<std::vector<unsigned>> cores(const std::string& name);
    std::vector<std::string> texts(const std::string& name);                    // empty if it is missing
    std::vector<std::uint64_t> integers(const std::string& name, Range range);  // empty if it is missing
    std::vector<std::pair<std::uint64_t, std::uint64_t>> pairs(const std::string& name, Range range);
    Reader object(const std::string& name);
    std::vector<Reader> objects(const std::string& name);  // empty if it is missing
    std::optional<Reader> optional_object(const std::string& name);
    // Throws if a list or object that is there has fewer or more entries.
    void require_entries(const std::string& name, Range range) const;
    [[nodiscard]] bool has(const std::string& name) const { return value_.contains(name); }

    // Call this after reading all members: throws if there is any other.
    void finish() const;
    [[noreturn]] void fail(const std::string& name, const std::string& message) const;
    [[nodiscard]] std::string path_of(const std::string& name) const {
        return path_.empty() ? name : path_ + "." + name;
    }

private:
    std::size_t index_of_text(const std::string& name, const std::vector<std::string>& choices);
    const nlohmann::json& member(const std::string& name);
    std::optional<std::string> optional_text(const std::string& name);

    const nlohmann::json& value_;
    std::string path_;
    std::set<std::string> read_;
};

}  // namespace dutperf
