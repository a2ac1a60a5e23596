// Defects: the first of a kind at a place is described in words, those that follow are counted.
#pragma once
#include "state.h"

namespace cpucuda {
namespace {

Defect& note(Kind kind, uint32_t pc, const char* file, int line) {
  const uint64_t where = pc ? pc : uint64_t(line) << 32;
  auto [it, fresh] = defect_index.try_emplace(where * 64 + kind, defects.size());
  if (fresh) {
    defects.push_back({});
    Defect& f = defects.back();
    f.kind = kind, f.pc = pc, f.line = pc ? 0 : line;
    if (file && !pc) f.file = file;
  }
  return defects[it->second];
}
void describe(Defect& f, const char* format, va_list args) {
  char text[400];
  if (cur) {
    snprintf(text, sizeof text, "block (%u,%u,%u) warp %d lane %d ", cur->cta->id.x, cur->cta->id.y,
             cur->cta->id.z, cur->warp - cur->cta->first_warp, cur->lane);
    f.text = text;
  }
  vsnprintf(text, sizeof text, format, args);
  f.text += text;
}
// What no tab or line end may be in.
std::string field(const std::string& text) {
  std::string s = text;
  for (char& c : s)
    if (c == '\t' || c == '\n') c = ' ';
  return s;
}
// kind, pc, other pc, file, line, count, text.
std::string as_row(const Defect& f) {
  return std::string(KIND_NAME[f.kind]) + '\t' + std::to_string(f.pc) + '\t' + std::to_string(f.other_pc) +
         '\t' + field(f.file) + '\t' + std::to_string(f.line) + '\t' + std::to_string(f.count) + '\t' +
         field(f.text) + '\n';
}
// On stderr at once, for a process that dies or does not end before it is asked.
void announce(const Defect& f) { dprintf(2, "finding\t%s", as_row(f).c_str()); }
__attribute__((format(printf, 4, 5), cold)) void report(Kind kind, Pc pc, uint32_t other, const char* format,
                                                        ...) {
  Defect& f = note(kind, offset_of(pc), nullptr, 0);
  if (f.count++) return;
  f.other_pc = other;
  va_list args;
  va_start(args, format);
  describe(f, format, args);
  va_end(args);
  announce(f);
}
__attribute__((format(printf, 4, 5), cold)) void report_at(Kind kind, const char* file, int line,
                                                           const char* format, ...) {
  Defect& f = note(kind, 0, file, line);
  if (f.count++) return;
  va_list args;
  va_start(args, format);
  describe(f, format, args);
  va_end(args);
  announce(f);
}

}  // namespace
}  // namespace cpucuda
