import { describe, expect, test } from 'vitest';
import { Cleanup } from '#kit/lifecycle/lifecycle.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import type { Running } from './launch.ts';
import type { ProcessPlan } from './layout.ts';
import { type FleetEvent, supervise } from './supervise.ts';

const plan = (service: string, name: string = service): ProcessPlan => ({
  name,
  service,
  clientId: name,
  env: {},
});

/** Processes that end when the test ends them. */
class Launcher {
  readonly log: string[] = [];
  readonly ends = new Map<string, (reason: string) => void>();
  refuses: string | undefined;
  #pid = 100;

  readonly launch = async ({ name }: ProcessPlan): Promise<Running> => {
    this.log.push(`begin ${name}`);
    await new Promise((resolve) => setImmediate(resolve));
    if (this.refuses === name) throw new Error(`${name} does not start`);
    this.log.push(`ready ${name}`);
    this.#pid += 1;
    const ended = new Promise<string>((resolve) => this.ends.set(name, resolve));
    return {
      name,
      pid: this.#pid,
      ended,
      stop: async () => {
        this.log.push(`stop ${name}`);
        this.ends.get(name)?.('stopped');
      },
    };
  };
}

async function begin(validators: number, launcher = new Launcher()) {
  const cleanup = new Cleanup();
  const events: FleetEvent[] = [];
  const ids = Array.from({ length: validators }, (_, index) => plan('validator', `validator-${index}`));
  const supervision = await supervise([[plan('tenant')], ids, [plan('gateway')]], {
    launch: launcher.launch,
    cleanup,
    afterStage: async (stage) => void launcher.log.push(`after ${stage.length}`),
    onChange: (event) => events.push(event),
  });
  return { supervision, cleanup, events, launcher };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('the processes of local mode while they run', () => {
  test('start in stages, those of a stage at the same time, and stop in reverse order', async () => {
    const { supervision, cleanup, launcher } = await begin(2);
    expect(launcher.log).toEqual([
      'begin tenant',
      'ready tenant',
      'after 1',
      'begin validator-0',
      'begin validator-1',
      'ready validator-0',
      'ready validator-1',
      'after 2',
      'begin gateway',
      'ready gateway',
      'after 1',
    ]);
    expect(supervision.running().map(({ name }) => name)).toEqual([
      'tenant',
      'validator-0',
      'validator-1',
      'gateway',
    ]);
    launcher.log.length = 0;
    await cleanup.run(testRuntime('standalone').log);
    expect(launcher.log).toEqual(['stop gateway', 'stop validator-0', 'stop validator-1', 'stop tenant']);
  });

  test('of several validators one may end and be restarted; the end of any other process ends all', async () => {
    const { supervision, events, launcher } = await begin(4);
    launcher.ends.get('validator-2')?.('SIGKILL');
    await settle();
    expect(events).toEqual([{ name: 'validator-2', reason: 'SIGKILL', running: 3, planned: 4 }]);
    expect(supervision.running().map(({ name }) => name)).not.toContain('validator-2');
    await expect(supervision.again('validator-1')).rejects.toThrow('validator-1 runs already');
    await expect(supervision.again('gateway')).rejects.toThrow('is not one of several validators');
    const again = supervision.again('validator-2');
    await expect(supervision.again('validator-2')).rejects.toThrow('runs already');
    expect(await again).toBeGreaterThan(100);
    expect(events.at(-1)).toEqual({ name: 'validator-2', reason: undefined, running: 4, planned: 4 });
    launcher.ends.get('tenant')?.('exit code 1');
    expect(await supervision.broken).toBe('tenant ended: exit code 1');
  });

  test('end when the only validator ends', async () => {
    const { supervision, events, launcher } = await begin(1);
    launcher.ends.get('validator-0')?.('SIGKILL');
    expect(await supervision.broken).toBe('validator-0 ended: SIGKILL');
    expect(events).toEqual([]);
    await expect(supervision.again('validator-0')).rejects.toThrow();
  });

  test('a validator whose restart failed may be restarted again', async () => {
    const { supervision, launcher } = await begin(2);
    launcher.ends.get('validator-1')?.('SIGKILL');
    await settle();
    launcher.refuses = 'validator-1';
    await expect(supervision.again('validator-1')).rejects.toThrow('does not start');
    launcher.refuses = undefined;
    await supervision.again('validator-1');
    expect(supervision.running()).toHaveLength(4);
  });

  test('when a stage fails, everything started is stopped', async () => {
    const launcher = new Launcher();
    launcher.refuses = 'validator-0';
    const cleanup = new Cleanup();
    const stages = [[plan('tenant')], [plan('validator', 'validator-0'), plan('validator', 'validator-1')]];
    const options = {
      launch: launcher.launch,
      cleanup,
      afterStage: async () => undefined,
      onChange: () => undefined,
    };
    await expect(supervise(stages, options)).rejects.toThrow('validator-0 does not start');
    await cleanup.run(testRuntime('standalone').log);
    expect(launcher.log.filter((line) => line.startsWith('stop'))).toEqual([
      'stop validator-1',
      'stop tenant',
    ]);
  });
});
