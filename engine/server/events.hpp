// SPDX-License-Identifier: Apache-2.0
// Makes the JSON of events from the engine's values (protocol/event.schema.json).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "measure/histogram.hpp"
#include "platform/error.hpp"
#include "server/session.hpp"
#include "trial/run_trial.hpp"

namespace dutperf {

// Quantiles of a distribution in ticks: p50, p99, p999, max, in microseconds.
nlohmann::json quantiles_us(const Histogram& histogram, std::uint64_t clock_hz);

nlohmann::json hello_event();
nlohmann::json opened_event(const Session& session);
nlohmann::json loaded_event(const FrameList& list);
nlohmann::json progress_event(RunningTrial& trial, std::uint64_t clock_hz);
nlohmann::json result_event(const TrialResult& result, const TestBed& bed);
nlohmann::json stopped_event();
nlohmann::json error_event(const Error& error);

}  // namespace dutperf
