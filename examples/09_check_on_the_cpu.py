"""Run a version on the CPU, thread by thread: numbers, races and bank conflicts. It needs g++ 12."""

import profiler

answer = profiler.check("v1", seeds=1)
print(
    answer.to_frame()[["version", "workload", "passed", "max_abs_error", "bank_conflicts"]].to_string(
        index=False
    )
)
print("exit code:", int(answer.exit_code))
