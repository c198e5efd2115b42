import { beforeEach, expect, test } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { type ManualTiming, manualTiming, settle } from '#kit/testing/manual-timing.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { Store } from '../kube/store.ts';
import { watchInstallations } from './installations.ts';
import { type SessionWarmupOptions, warmUpSessions } from './session-warmup.ts';
import { installationMap, installationText } from './testing/installation.fixture.ts';

const runtime = testRuntime('operator', { level: 'silent' });

let timing: ManualTiming;
let configMaps: Store;
/** Namespaces whose token was requested, in order. */
let tokens: string[];
/** Namespaces without an identity. */
let away: Set<string>;

beforeEach(() => {
  timing = manualTiming();
  configMaps = new Store({}, (error) => expect.fail(String(error)));
  tokens = [];
  away = new Set();
});

function put(namespace: string, more: object = {}): void {
  configMaps.put(installationMap({ ...installationText, ...more }, namespace));
}

/** Warm-up of a process in namespace `acme` that does not lead. */
function begin(): () => void {
  const sessions: SessionWarmupOptions['sessions'] = {
    of: async (installation) => {
      const { namespace } = installation;
      if (away.has(namespace)) throw new AppError('unavailable', 'WORKLOAD_IDENTITY_MISSING', 'not yet');
      const token = async () => {
        tokens.push(namespace);
        return 'token';
      };
      return { token };
    },
  };
  const installations = watchInstallations(configMaps, 'acme');
  return warmUpSessions({ sessions, installations, timing, log: runtime.log });
}

test('identity and token of managed installations, and of no others, are ready at once and kept ready', async () => {
  put('acme');
  put('gamma', { operatorNamespace: 'gamma' });
  begin();
  await settle();
  expect(tokens).toEqual(['acme']);
  put('beta', { operatorNamespace: 'acme' });
  await settle();
  expect(tokens.toSorted()).toEqual(['acme', 'acme', 'beta']);
  tokens.length = 0;
  await timing.advance(10_000);
  expect(tokens).toEqual(['acme', 'beta']);
});

test('a failing installation is retried and delays no other', async () => {
  put('acme');
  put('beta', { operatorNamespace: 'acme' });
  away.add('acme');
  begin();
  await settle();
  expect(tokens).toEqual(['beta']);
  away.clear();
  await timing.advance(10_000);
  expect(tokens).toEqual(['beta', 'acme', 'beta']);
});

test('after the stop no token is requested', async () => {
  put('acme');
  const end = begin();
  await settle();
  end();
  put('beta', { operatorNamespace: 'acme' });
  await timing.advance(60_000);
  expect(tokens).toEqual(['acme']);
});
