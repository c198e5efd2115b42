import { describe, expect, it } from 'vitest';
import { manualClock } from '#kit/clock/clock.ts';
import { Scheduler } from '#kit/clock/timers.ts';
import type { Envelope, Head, Heartbeat } from '../transport/transport.ts';
import { Presence } from './presence.ts';

const registerId = 'ab'.repeat(16);

function openPresence() {
  const clock = manualClock(1_000_000);
  const scheduler = new Scheduler(clock);
  const sent: { to: string; envelope: Heartbeat }[] = [];
  const returned: string[] = [];
  const heads = new Map<string, Head>();
  const draining = { self: false };
  const presence = new Presence({
    self: 'validator-0',
    version: 'v1',
    clock,
    scheduler,
    send: (to: string, envelope: Envelope) => {
      if (envelope.kind === 'heartbeat') sent.push({ to, envelope });
    },
    head: (id) => heads.get(id),
    isDraining: () => draining.self,
    onReturn: (peer) => void returned.push(peer),
  });
  const pass = (ms: number) => {
    clock.advance(ms);
    scheduler.run();
  };
  const headsTo = (peer: string) =>
    sent.filter(({ to }) => to === peer).map(({ envelope }) => envelope.heads);
  const setHead = (height: number) => heads.set(registerId, { registerId, height, round: 0, headHash: '' });
  return { presence, draining, clock, sent, returned, pass, headsTo, setHead };
}

describe('presence', () => {
  it('sends one heartbeat a second to each validator, however many registers they share', () => {
    const { presence, sent, pass } = openPresence();
    presence.start();
    for (let index = 0; index < 50; index += 1) {
      presence.setMembers(`register-${index}`, ['validator-0', 'validator-1', 'validator-2']);
    }
    expect(presence.peers).toEqual(['validator-1', 'validator-2']);
    sent.length = 0;
    for (let second = 0; second < 3; second += 1) pass(1_000);
    expect(sent).toHaveLength(6);
    expect(sent.every(({ envelope }) => envelope.heads.length === 0)).toBe(true);
    presence.setMembers('register-0', ['validator-0', 'validator-1']);
    expect(presence.peers).toEqual(['validator-1', 'validator-2']);
  });

  it('reports an advanced register until the peer has it, at most five times', () => {
    const { presence, pass, headsTo, setHead } = openPresence();
    presence.start();
    setHead(4);
    presence.setMembers(registerId, ['validator-0', 'validator-1', 'validator-2']);
    presence.onAdvanced(registerId);
    pass(1_000);
    presence.onHead('validator-1', { registerId, height: 4, round: 0, headHash: '' });
    for (let second = 0; second < 8; second += 1) pass(1_000);
    expect(headsTo('validator-1').filter((heads) => heads.length > 0)).toHaveLength(1);
    expect(headsTo('validator-2').filter((heads) => heads.length > 0)).toHaveLength(5);
    // A peer that is behind receives the head again.
    presence.onHead('validator-2', { registerId, height: 2, round: 0, headHash: '' });
    pass(1_000);
    expect(headsTo('validator-2').at(-1)).toMatchObject([{ registerId, height: 4 }]);
  });

  it('records contact times, also from before a register was shared, and reports returning peers', () => {
    const { presence, clock, returned } = openPresence();
    presence.heard('validator-1');
    presence.setMembers(registerId, ['validator-0', 'validator-1']);
    expect(presence.contact('validator-1').heardAtMs).toBe(1_000_000);
    clock.advance(4_000);
    presence.heard('validator-1');
    expect(returned).toEqual([]);
    clock.advance(6_000);
    presence.heard('validator-1');
    expect(returned).toEqual(['validator-1']);
    expect(presence.contact('validator-9')).toMatchObject({ heardAtMs: 0, version: '' });
    expect(presence.isAbsent('validator-1')).toBe(false);
    clock.advance(3_001);
    expect(presence.isAbsent('validator-1')).toBe(true);
    presence.setMembers('another', ['validator-0', 'validator-2']);
    expect(presence.isAbsent('validator-2')).toBe(false);
    expect(presence.isAbsent('validator-0')).toBe(false);
    clock.advance(3_001);
    expect(presence.isAbsent('validator-2')).toBe(true);
  });

  it('records which peers drain, and announces its own drain', () => {
    const { presence, draining, sent } = openPresence();
    presence.setMembers(registerId, ['validator-0', 'validator-1']);
    const beat = { kind: 'heartbeat', registerId: '', validatorId: 'validator-1' } as const;
    presence.onHeartbeat('validator-1', { ...beat, atMs: 1, version: 'v', heads: [], draining: true });
    presence.heard('validator-1');
    expect(presence.isAbsent('validator-1')).toBe(true);
    presence.onHeartbeat('validator-1', { ...beat, atMs: 2, version: 'v', heads: [], draining: false });
    expect(presence.isAbsent('validator-1')).toBe(false);
    expect(presence.isAbsent('validator-0')).toBe(false);
    draining.self = true;
    presence.sendHeartbeats();
    expect(sent.at(-1)?.envelope.draining).toBe(true);
    expect(presence.isAbsent('validator-0')).toBe(true);
  });
});
