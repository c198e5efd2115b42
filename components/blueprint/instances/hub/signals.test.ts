import { describe, expect, it } from 'vitest';
import { blueprintEvent } from '#core/events/blueprint-events.ts';
import { BLUEPRINT_HUB_EVENTS, type BlueprintHubEvent } from '#core/events/hub-events.ts';
import type { OutboxEvent } from '#kit/db/outbox.ts';
import { signalsOf, walletGroup } from './signals.ts';

const instanceId = '019a0000-0000-7000-8000-000000000001';
const operationId = '019a0000-0000-7000-8000-000000000002';
const step = {
  wallet: 'w1a',
  registerId: 'a'.repeat(32),
  instanceId,
  txId: 'b'.repeat(64),
  actionId: 0,
  isRejection: false,
  available: [1, 2],
  hasEnded: true,
};

function row({ kind, key, data }: ReturnType<typeof blueprintEvent>): OutboxEvent {
  const cursor = { transactionId: 1n, sequence: 1n };
  return { cursor, kind, key, data, createdAt: new Date('2026-11-21T12:00:00Z') };
}

const rows = [
  row(blueprintEvent('StepSealed', step)),
  row(blueprintEvent('StepSealed', { ...step, isRejection: true, available: [], traceId: 'c'.repeat(32) })),
  ...(['Encrypting', 'Encrypted', 'Failed'] as const).map((progress) =>
    row(blueprintEvent('OperationChanged', { wallet: 'w1a', operationId, progress })),
  ),
];

describe('signals of workflows', () => {
  it('are what the schemas of the hub say, and carry ids alone', () => {
    const signals = signalsOf(rows, () => true);
    expect(signals.map(({ target }) => target)).toEqual([
      'ActionConfirmed',
      'InstanceAdvanced',
      'ActionAvailable',
      'ActionAvailable',
      'WorkflowCompleted',
      'ActionRejected',
      'InstanceAdvanced',
      'EncryptionProgress',
      'EncryptionComplete',
      'EncryptionFailed',
    ]);
    expect([...new Set(signals.map(({ target }) => target))].toSorted()).toEqual(
      Object.keys(BLUEPRINT_HUB_EVENTS).toSorted(),
    );
    for (const { target, arguments: args, groups } of signals) {
      expect(BLUEPRINT_HUB_EVENTS[target as BlueprintHubEvent].parse(args)).toEqual(args);
      expect(args.filter((arg) => typeof arg === 'object')).toEqual([]);
      expect(groups).toEqual([walletGroup('w1a')]);
    }
  });

  it('are made for wallets alone that a connection follows', () => {
    expect(signalsOf(rows, (group) => group === walletGroup('w1b'))).toEqual([]);
  });

  it('are not made of rows of another kind, and a row that cannot be read is an error', () => {
    const [first] = rows;
    if (first === undefined) throw new Error('no row');
    expect(signalsOf([{ ...first, kind: 'Later' }], () => true)).toEqual([]);
    expect(() => signalsOf([{ ...first, data: { wallet: 'w1a' } }], () => true)).toThrow('StepSealed');
  });
});
