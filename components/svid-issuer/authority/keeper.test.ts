import { X509Certificate } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ManualClock, manualClock } from '#kit/clock/clock.ts';
import { createLogger } from '#kit/log/log.ts';
import { HttpClusterApi } from '../kubernetes/http-cluster-api.ts';
import { FakeApiServer } from '../kubernetes/testing/fake-api-server.ts';
import { AuthorityKeeper, BUNDLE_KEY, ROOTS_KEY, ROTATE_ANNOTATION } from './keeper.ts';

const trustDomain = 'acme.local';
const timing = { pollMs: 3_600_000, staleMs: 60_000, overlapMs: 600_000, startMs: 0 };

describe('the authority keeper', () => {
  let server: FakeApiServer;
  let clock: ManualClock;
  let apis: HttpClusterApi[];
  let keepers: AuthorityKeeper[];

  function keeper(domain = trustDomain): AuthorityKeeper {
    const { host, port, credentialsDir, namespace } = server;
    const cluster = new HttpClusterApi({ host, port, credentialsDir, namespace });
    const log = createLogger({ service: 'test', level: 'silent' });
    const names = { secret: 'roots', configMap: 'bundle' };
    const made = new AuthorityKeeper({ trustDomain: domain, ...names, cluster, clock, log, timing });
    apis.push(cluster);
    keepers.push(made);
    return made;
  }

  const published = () => server.data('configmaps', 'bundle')[BUNDLE_KEY];

  beforeEach(async () => {
    server = await new FakeApiServer().start();
    server.put('secrets', 'roots');
    server.put('configmaps', 'bundle');
    clock = manualClock(Date.now());
    apis = [];
    keepers = [];
  });
  afterEach(async () => {
    await Promise.all(keepers.map((one) => one.stop()));
    await Promise.all(apis.map((one) => one.close()));
    await server.stop();
  });

  it('creates the authority at the first start, publishes it, and loads it at the next', async () => {
    const first = keeper();
    await first.start();
    const { signer, bundlePem } = first.current();
    expect(bundlePem).toBe(signer.certificatePem);
    expect(published()).toBe(bundlePem);
    expect(published()).not.toContain('PRIVATE KEY');
    const second = keeper();
    await second.start();
    expect(second.current().bundlePem).toBe(bundlePem);
  });

  it('agrees with replicas that start at the same time', async () => {
    const all = [keeper(), keeper(), keeper()];
    await Promise.all(all.map((one) => one.start()));
    expect(new Set(all.map((one) => one.current().bundlePem)).size).toBe(1);
    expect(published()).toBe(all[0]?.current().bundlePem);
  });

  it('rotates the root on request, step by step, with replicas that poll at different times', async () => {
    const [one, two] = [keeper(), keeper()] as const;
    await one.start();
    await two.start();
    const before = one.current().bundlePem;
    server.annotate('secrets', 'roots', { [ROTATE_ANNOTATION]: 'once' });
    await two.poll();
    const both = two.current().bundlePem;
    expect(two.current().signer.certificatePem).toBe(before);
    expect(both.match(/BEGIN/g)).toHaveLength(2);
    expect(published()).toBe(both);
    clock.advance(timing.overlapMs);
    await Promise.all([one.poll(), two.poll()]);
    await one.poll();
    expect(one.current().bundlePem).toBe(two.current().bundlePem);
    expect(one.current().signer.certificatePem).not.toBe(before);
    expect(one.current().bundlePem).toContain(before);
    clock.advance(timing.overlapMs);
    await two.poll();
    expect(two.current().bundlePem).not.toContain(before);
    expect(published()).toBe(two.current().signer.certificatePem);
    expect(server.data('secrets', 'roots')[ROOTS_KEY]?.match(/PRIVATE KEY/g)).toHaveLength(2);
  });

  it('lets a root sign only after it was published for the whole overlap', async () => {
    const one = keeper();
    await one.start();
    const before = one.current().bundlePem;
    server.annotate('secrets', 'roots', { [ROTATE_ANNOTATION]: 'once' });
    await one.poll();
    server.setData('configmaps', 'bundle', { [BUNDLE_KEY]: before });
    clock.advance(timing.overlapMs);
    await one.poll();
    expect(one.current().signer.certificatePem).toBe(before);
    expect(published()).toBe(one.current().bundlePem);
    clock.advance(timing.overlapMs);
    await one.poll();
    expect(one.current().signer.certificatePem).not.toBe(before);
  });

  it('restores what it publishes', async () => {
    const one = keeper();
    await one.start();
    server.setData('configmaps', 'bundle', { [BUNDLE_KEY]: 'mine' });
    await one.poll();
    expect(published()).toBe(one.current().bundlePem);
  });

  it('signs nothing on a stale view', async () => {
    const one = keeper();
    await one.start();
    server.mode = 'breaks';
    await expect(one.poll()).rejects.toMatchObject({ code: 'KUBERNETES_UNAVAILABLE' });
    clock.advance(timing.staleMs);
    expect(one.current().bundlePem).toBe(published());
    clock.advance(1);
    expect(() => one.current()).toThrow(expect.objectContaining({ code: 'AUTHORITY_UNAVAILABLE' }));
    server.mode = 'serves';
    await one.poll();
    expect(one.current().bundlePem).toBe(published());
  });

  it.each([
    ['what it cannot read', 'x', 'AUTHORITY_DAMAGED'],
    ['the roots of another installation', undefined, 'ISSUER_TRUST_DOMAIN'],
  ])('never overwrites %s', async (_what, text, code) => {
    if (text === undefined) await keeper('other.local').start();
    else server.setData('secrets', 'roots', { [ROOTS_KEY]: Buffer.from(text).toString('base64') });
    const before = server.data('secrets', 'roots');
    await expect(keeper().start()).rejects.toMatchObject({ kind: 'conflict', code });
    expect(server.data('secrets', 'roots')).toEqual(before);
  });

  it('names what is missing in the cluster', async () => {
    server.mode = 'forbids';
    await expect(keeper().start()).rejects.toThrow('forbidden by RBAC');
  });

  it('creates roots that are valid for a year', async () => {
    const one = keeper();
    await one.start();
    const { validToDate } = new X509Certificate(one.current().bundlePem);
    expect(Math.round((validToDate.getTime() - clock.nowMs()) / 86_400_000)).toBe(365);
  });
});
