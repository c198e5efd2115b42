import { beforeEach, expect, test } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { Store } from '../kube/store.ts';
import { type ManualTiming, manualTiming, settle } from '../kube/testing/manual-timing.ts';
import { watchInstallations } from './installations.ts';
import { type SessionWarmupOptions, warmUpSessions } from './session-warmup.ts';
import { installationMap, installationText } from './testing/installation.fixture.ts';

const runtime = testRuntime('operator', { level: 'silent' });

let timing: ManualTiming;
let configMaps: Store;
/** Namespaces whose token was asked for, in order. */
let tokens: string[];
/** Namespaces that have no identity. */
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

/** Of a process in namespace `acme` that leads nothing. */
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

test('the installations that are looked after, and no others, have identity and token at once and from then on', async () => {
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

test('one that has none yet is tried again, and holds up no other', async () => {
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

test('after its end nobody is asked', async () => {
  put('acme');
  const end = begin();
  await settle();
  end();
  put('beta', { operatorNamespace: 'acme' });
  await timing.advance(60_000);
  expect(tokens).toEqual(['acme']);
});
