import { type Clock, systemClock } from '#kit/clock/clock.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createLogger, type LogLevel } from '#kit/log/log.ts';
import { createTelemetry } from '#kit/telemetry/telemetry.ts';

/** Installation name of tests. */
export const testInstallation = 'test.chancery.local';

/** A runtime whose log keeps its lines instead of printing them. */
export interface TestRuntime extends Runtime {
  /** Parsed log lines so far, oldest first. */
  readonly lines: readonly Readonly<Record<string, unknown>>[];
}

export interface TestRuntimeOptions {
  readonly clock?: Clock;
  /** `debug` when absent. */
  readonly level?: LogLevel;
}

/** A runtime of its own for one test: nothing in it is global. */
export function testRuntime(service: string, options: TestRuntimeOptions = {}): TestRuntime {
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({
    service,
    level: options.level ?? 'debug',
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  });
  return {
    service,
    installation: testInstallation,
    log,
    clock: options.clock ?? systemClock(),
    telemetry: createTelemetry({ service }),
    judgesAnswers: true,
    lines,
  };
}
