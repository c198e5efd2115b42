import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import { tokenReview } from '../kubernetes/cluster-api.ts';
import { identify } from './identify.ts';

const entries = z
  .object({
    entries: z.array(
      z.object({
        parent_id: z.string(),
        spiffe_id: z.string(),
        selectors: z.array(z.object({ type: z.string(), value: z.string() })),
      }),
    ),
  })
  .parse(JSON.parse(readFileSync(join(import.meta.dirname, '../../../spire/entries.json'), 'utf8'))).entries;

const services = [
  'service-gateway',
  'service-tenant',
  'service-wallet',
  'service-register',
  'service-blueprint',
  'service-credential',
  'service-operator',
];
const workloads = entries.filter(({ selectors }) => selectors.some(({ type }) => type === 'k8s'));

describe('registration entries for SPIRE', () => {
  it('exist for every service and for a set of four', () => {
    const names = workloads.map(({ spiffe_id }) => spiffe_id.split('/').at(-1));
    const members = [0, 1, 2, 3].map((ordinal) => `validator-main-${ordinal}`);
    expect(names).toEqual([...services, ...members]);
  });

  it.each(workloads)('give $spiffe_id the identity that the issuer gives', ({ spiffe_id, selectors }) => {
    const value = (key: string) =>
      selectors.find((selector) => selector.value.startsWith(`${key}:`))?.value.slice(key.length + 1);
    const pod = value('pod-name');
    const review = tokenReview.parse({
      authenticated: true,
      audiences: ['here'],
      user: {
        username: `system:serviceaccount:${value('ns')}:${value('sa')}`,
        extra: pod === undefined ? {} : { 'authentication.kubernetes.io/pod-name': [pod] },
      },
    });
    const rules = { audience: 'here', namespace: 'chancery', serviceAccounts: new Set(services) };
    expect(serviceSpiffeId('acme.chancery.local', identify(review, rules))).toBe(spiffe_id);
  });

  it('have the agents of the cluster as parents', () => {
    const [nodes] = entries.filter(({ selectors }) => selectors.every(({ type }) => type === 'k8s_psat'));
    expect(nodes?.parent_id).toBe('spiffe://acme.chancery.local/spire/server');
    expect(new Set(workloads.map(({ parent_id }) => parent_id))).toEqual(new Set([nodes?.spiffe_id]));
  });
});
