// SPDX-License-Identifier: Apache-2.0
#include "server/server.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

#include "server/events.hpp"
#include "server/requests.hpp"

namespace dutperf {

using nlohmann::json;

namespace {

constexpr int kIdleWaitMs = 10;     // between two looks at the ports for ARP and NDP
constexpr int kTrialWaitMs = 5;     // between two looks at a running trial
constexpr int kNothingOpenMs = -1;  // wait for requests only
constexpr std::size_t kLongestLine = 1U << 20U;

}  // namespace

void Server::serve_until_end_of_input() {
    for (std::string line; wait_for_input() != Input::end;) {
        while (take_line(line)) handle(line);
        if (trial_) {
            look_after_trial();
        } else if (session_) {
            session_->serve();
        }
    }
}

Server::Input Server::wait_for_input() {
    pollfd wanted{.fd = input_, .events = POLLIN, .revents = 0};
    const int ready = poll(&wanted, 1, trial_ ? kTrialWaitMs : session_ ? kIdleWaitMs : kNothingOpenMs);
    if (ready <= 0) return Input::nothing;
    std::array<char, 65536> chunk{};
    const ssize_t length = read(input_, chunk.data(), chunk.size());
    if (length <= 0) return Input::end;
    buffer_.append(chunk.data(), static_cast<std::size_t>(length));
    return Input::some;
}

bool Server::take_line(std::string& line) {
    const std::size_t end = buffer_.find('\n');
    if (end == std::string::npos) {
        if (buffer_.size() > kLongestLine) buffer_.clear();
        return false;
    }
    line = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);
    return true;
}

void Server::handle(const std::string& line) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) return;
    const json parsed = json::parse(line, nullptr, false);
    if (!parsed.is_object()) return write(error_event(Error("bad_json", "the line is no JSON object")), nullptr);
    const json id = parsed.contains("id") && parsed["id"].is_number_unsigned() ? parsed["id"] : json(nullptr);
    try {
        Reader request(parsed, "");
        request.integer("id", {0, (std::uint64_t{1} << 53U) - 1});
        dispatch(id, request.text("method"), request);
    } catch (const Error& error) {
        write(error_event(error), id);
    } catch (const std::exception& error) {
        write(error_event(Error("internal", error.what())), id);
    }
}

void Server::dispatch(const json& id, const std::string& method, Reader& request) {
    if (method == "hello") {
        request.finish();
        return write(hello_event(), id);
    }
    if (method == "stop") {
        request.finish();
        return stop(id);
    }
    if (method != "open" && method != "run") request.fail("method", "must be one of hello, open, run, stop, not '" + method + "'");
    if (trial_) throw Error("busy", "a trial is running");
    if (method == "open") {
        open(id, request);
    } else {
        run(id, request);
    }
}

void Server::open(const json& id, Reader& request) {
    if (session_) throw Error("already_open", "the ports are open already; another set-up needs another engine");
    const OpenRequest parsed = read_open(request.object("params"));
    request.finish();
    session_ = std::make_unique<Session>(parsed);
    write(opened_event(*session_), id);
}

void Server::run(const json& id, Reader& request) {
    if (!session_) throw Error("not_open", "no ports are open yet");
    const TrialSpec spec = read_trial(request.object("params"), session_->request().max_frame_size);
    request.finish();
    trial_ = std::make_unique<RunningTrial>(session_->bed(), spec);
    trial_id_ = id;
    next_progress_s_ = 1;
}

void Server::stop(const json& id) {
    if (trial_) trial_->stop();
    write(stopped_event(), id);
}

void Server::look_after_trial() {
    if (trial_->done()) {
        const json event = result_event(trial_->finish(), session_->bed().clock_hz);
        trial_.reset();
        write(event, trial_id_);
    } else if (trial_->elapsed_s() >= next_progress_s_) {
        next_progress_s_ += 1;
        write(progress_event(*trial_), trial_id_);
    }
}

void Server::write(json event, const json& id) const {
    event["id"] = id;
    const std::string line = event.dump() + "\n";
    for (std::size_t written = 0; written < line.size();) {
        const ssize_t count = ::write(output_, line.data() + written, line.size() - written);
        if (count <= 0) return;  // nobody listens any more: the end of input follows
        written += static_cast<std::size_t>(count);
    }
}

}  // namespace dutperf
