import { describe, expect, it } from 'vitest';
import { aggregate, Track } from './track.ts';

const registerId = '0123456789abcdef0123456789abcdef';

describe('recovery state of a register', () => {
  it('begins synced, and reports a register without genesis', () => {
    expect(new Track(registerId, 0).entry(0)).toEqual({
      registerId,
      status: 'synced',
      currentDocket: 0,
      targetDocket: 0,
      hasGenesis: false,
      progressPercent: 100,
      docketsProcessed: 0,
      lastError: null,
      isStale: false,
    });
  });

  it('progresses from 0 to 100 per cent of the missing dockets, and is then synced', () => {
    const track = new Track(registerId, 10);
    track.observe(10, 20);
    expect(track.isDue(0)).toBe(true);
    track.begin(0);
    const seen = Array.from({ length: 10 }, (_, index) => {
      track.stored(11 + index, 0);
      return track.entry(0).progressPercent;
    });
    expect(seen).toEqual([10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
    expect(track.entry(0)).toMatchObject({ status: 'synced', currentDocket: 19, docketsProcessed: 10 });
  });

  it('progress never decreases while the target grows', () => {
    const track = new Track(registerId, 0);
    track.observe(0, 10);
    track.begin(0);
    track.stored(9, 0);
    expect(track.entry(0).progressPercent).toBe(90);
    track.observe(9, 100);
    track.stored(10, 0);
    expect(track.entry(0)).toMatchObject({ progressPercent: 90, targetDocket: 99, status: 'recovering' });
    track.stored(100, 0);
    expect(track.entry(0)).toMatchObject({ progressPercent: 100, status: 'synced' });
  });

  it('is stale after 10 s without a docket stored or received, and only while it recovers', () => {
    const track = new Track(registerId, 0);
    track.observe(0, 10);
    track.begin(1_000);
    expect(track.entry(11_000).isStale).toBe(false);
    expect(track.entry(11_001).isStale).toBe(true);
    track.received(5_000);
    expect(track.entry(11_001).isStale).toBe(false);
    track.stall(50_000);
    expect(track.entry(40_000)).toMatchObject({ status: 'stalled', isStale: false });
    expect(track.isDue(49_999)).toBe(false);
    expect(track.isDue(50_000)).toBe(true);
  });

  it('is synced when another writer stored the missing dockets, also after a stall', () => {
    const track = new Track(registerId, 0);
    track.observe(0, 10);
    track.begin(0);
    track.failed('validator-0', 'away');
    track.stall(30_000);
    expect(track.entry(0).lastError).toBe('validator-0: away');
    track.observe(10, 10);
    expect(track.entry(0)).toMatchObject({ status: 'synced', lastError: null, progressPercent: 100 });
  });
});

describe('the aggregate status', () => {
  it.each([
    [[], 'synced'],
    [['synced', 'synced'], 'synced'],
    [['synced', 'recovering'], 'recovering'],
    [['recovering', 'stalled', 'synced'], 'stalled'],
  ] as const)('%j is %s', (statuses, expected) => {
    expect(aggregate(statuses)).toBe(expected);
  });
});
