import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { manualClock } from '#kit/clock/clock.ts';
import { ConfigError, commonSettings } from '#kit/config/config.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { Cleanup, type Component, type Create, type Runtime, start } from './lifecycle.ts';

const env = {
  CHANCERY_INSTALLATION: 'test.local',
  SPIFFE_ENDPOINT_SOCKET: 'unix:/run/spiffe.sock',
  NATS_URL: 'nats://127.0.0.1:4222',
};
const stored = { ...env, DATABASE_URL: 'postgres://here' };
const schema = z.object({ ...commonSettings, CHANCERY_COLOUR: z.string().default('red') });

describe('start', () => {
  it('passes configuration and plumbing to the component, and stops it once', async () => {
    let received: Runtime | undefined;
    let stops = 0;
    const create: Create<z.output<typeof schema>> = async (config, runtime) => {
      received = runtime;
      return {
        name: config.CHANCERY_COLOUR,
        addresses: { ops: '127.0.0.1:1' },
        stop: async () => {
          stops += 1;
        },
      };
    };
    const { log, lines } = testRuntime('service-test');
    const clock = manualClock(5);
    const component = await start({ service: 'service-test', schema, create, env, log, clock });
    expect(component).toMatchObject({ name: 'red', addresses: { ops: '127.0.0.1:1' } });
    expect(received).toMatchObject({ service: 'service-test', installation: 'test.local', clock, log });
    expect(lines.at(-1)).toMatchObject({ msg: 'started', ops: '127.0.0.1:1' });
    await Promise.all([component.stop(), component.stop()]);
    expect(stops).toBe(1);
  });

  it('refuses bad settings before the component opens anything', async () => {
    let created = false;
    const create = async (): Promise<Component> => {
      created = true;
      throw new Error('not reached');
    };
    const bad = { ...env, CHANCERY_OPS_PORT: 'x' };
    await expect(start({ service: 'service-test', schema, create, env: bad })).rejects.toThrow(ConfigError);
    expect(created).toBe(false);
  });

  it('rethrows what a component throws', async () => {
    const create = async (): Promise<Component> => {
      throw new Error('port taken');
    };
    await expect(start({ service: 'service-test', schema, create, env })).rejects.toThrow('port taken');
  });
});

describe('Cleanup', () => {
  it('closes in reverse, once, in spite of failures', async () => {
    const runtime = testRuntime('service-test');
    const closed: string[] = [];
    const cleanup = new Cleanup();
    cleanup.add('database', () => void closed.push('database'));
    cleanup.add('broken', () => {
      throw new Error('stuck');
    });
    cleanup.add('server', async () => {
      await Promise.resolve();
      closed.push('server');
    });
    await Promise.all([cleanup.run(runtime.log), cleanup.run(runtime.log)]);
    expect(closed).toEqual(['server', 'database']);
    expect(runtime.lines).toEqual([expect.objectContaining({ msg: 'closing failed', step: 'broken' })]);
  });
});

describe('run', () => {
  const program = (create: string) => `
    import { z } from 'zod';
    import { run } from '#kit/lifecycle/lifecycle.ts';
    import { commonSettings } from '#kit/config/config.ts';
    const schema = z.object({ ...commonSettings, DATABASE_URL: z.string() });
    const migrate = async ({ url }) => {
      if (url.endsWith('away')) throw new Error('no database');
      return ['0001-' + url];
    };
    await run({ service: 'service-test', schema, create: ${create}, migrate });`;
  const working = `async () => {
    const timer = setInterval(() => undefined, 1000);
    return { name: 'x', addresses: {}, stop: async () => { clearInterval(timer); console.log('stopped in order'); } };
  }`;

  function launch(create: string, settings: NodeJS.ProcessEnv, ...words: string[]) {
    const child = spawn(
      process.execPath,
      ['--input-type=module', '--eval', program(create), 'main.ts', ...words],
      {
        env: settings,
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    onTestFinished(() => void child.kill('SIGKILL'));
    const output: string[] = [];
    const started = Promise.withResolvers<void>();
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        output.push(line);
        if (line.includes('"started"')) {
          started.resolve();
        }
      });
    }
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
    return { child, output, started: started.promise, ended };
  }

  it('stops in order on SIGTERM and exits with 0', { timeout: 20_000 }, async () => {
    const { child, output, started, ended } = launch(working, stored);
    await started;
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
    expect(output.join('\n')).toContain('stopped in order');
  });

  it('exits with 78 and names every fault on invalid settings', { timeout: 20_000 }, async () => {
    const { output, ended } = launch(working, {
      ...stored,
      NATS_URL: '',
      CHANCERY_OPS_PORT: 'x',
      CHANCERY_COLOUR: 'red',
    });
    expect(await ended).toBe(78);
    const text = output.join('\n');
    expect(text).toContain('service-test: invalid configuration (3)');
    expect(text).toContain('NATS_URL: required');
    expect(text).not.toContain('at file:');
  });

  it('exits with 1 when the component cannot start', { timeout: 20_000 }, async () => {
    const { output, ended } = launch(`async () => { throw new Error('port taken'); }`, stored);
    expect(await ended).toBe(1);
    expect(output.join('\n')).toContain('port taken');
  });

  it('migrates and exits, with the settings of the database alone', { timeout: 20_000 }, async () => {
    const { output, ended } = launch(working, { DATABASE_URL: 'postgres://here' }, 'migrate');
    expect(await ended).toBe(0);
    expect(output.join('\n')).toContain('"applied":["0001-postgres://here"]');
    expect(output.join('\n')).not.toContain('"started"');
  });

  it.each<readonly [number, string, NodeJS.ProcessEnv, string]>([
    [1, 'no database', { DATABASE_URL: 'postgres://away' }, 'migrate'],
    [78, 'DATABASE_URL: required', {}, 'migrate'],
    [
      78,
      'CHANCERY_COLOUR: unknown setting',
      { DATABASE_URL: 'postgres://x', CHANCERY_COLOUR: 'red' },
      'migrate',
    ],
    [64, 'unknown argument migrat', stored, 'migrat'],
  ])('exits with %i and prints %s', { timeout: 20_000 }, async (code, text, settings, word) => {
    const { output, ended } = launch(working, settings, word);
    expect(await ended).toBe(code);
    expect(output.join('\n')).toContain(text);
  });

  it('exits with 1 when a stop fails', { timeout: 20_000 }, async () => {
    const stuck = working.replace(/clearInterval.*in order'\);/, `throw new Error('stuck');`);
    const { child, output, started, ended } = launch(stuck, stored);
    await started;
    child.kill('SIGINT');
    expect(await ended).toBe(1);
    expect(output.join('\n')).toContain('stuck');
  });
});
