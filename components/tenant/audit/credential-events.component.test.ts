import { randomUUID } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Caller } from '#core/identity/claims.ts';
import {
  CredentialEventKind,
  RecordCredentialEventsRequestSchema,
} from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { bearer, grant, startTestTenant, type TestTenant } from '../tenant.fixture.ts';
import { auditRpc } from './rpc.ts';

const nowhere = '00000000-0000-4000-8000-000000000000';

describe('events of credentials in the audit log', () => {
  let tenant: TestTenant;
  let acme: string;

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_audit_credentials');
    const made = await tenant.app.inject({
      method: 'POST',
      url: '/api/organizations',
      headers: bearer((await grant(tenant)).access_token),
      payload: { name: 'Acme', subdomain: 'acme' },
    });
    acme = made.json().id;
  });
  afterAll(() => tenant.stop());

  const event = (change: object = {}) => ({
    eventId: randomUUID(),
    organizationId: acme,
    kind: CredentialEventKind.ISSUED,
    resourceId: 'c1',
    detail: 'site-permit',
    platformUserId: '',
    occurredAtMs: BigInt(tenant.clock.nowMs()),
    ...change,
  });

  const record = (events: object[], clientId = 'service-credential', scopes = ['audit:write']) =>
    auditRpc({ db: tenant.db, clock: tenant.clock }).recordCredentialEvents(
      create(RecordCredentialEventsRequestSchema, { events }),
      {
        peer: { clientId, spiffeId: `spiffe://test/service/${clientId}` },
        caller: { scopes } as Partial<Caller> as Caller,
        signal: new AbortController().signal,
      },
    );

  const stored = async (type: string) => {
    const rows = await tenant.db.read
      .selectFrom('audit_events')
      .selectAll()
      .where('event_type', '=', type)
      .execute();
    return rows.map((row) => ({
      at: row.occurred_at.getTime(),
      by: row.platform_user_id,
      success: row.success,
      ...row.details,
    }));
  };

  it('is stored once, however often and in whichever order it is reported', async () => {
    const person = randomUUID();
    const at = tenant.clock.nowMs();
    const batch = [
      event(),
      event({ organizationId: nowhere }),
      event({
        kind: CredentialEventKind.STATUS_CHANGED,
        detail: 'Revoked',
        platformUserId: person,
        occurredAtMs: 4_000_000_000_000n,
      }),
      event({ kind: CredentialEventKind.NOT_TRUSTED, resourceId: 'r1', detail: 'TRUST_ISSUER_NOT_LISTED' }),
    ];
    await Promise.all(
      Array.from({ length: 6 }, (_, turn) => record(turn % 2 === 0 ? batch : batch.toReversed())),
    );
    const credential = { at, resourceType: 'credential', resourceId: 'c1', success: true };
    expect(await stored('CredentialIssued')).toEqual([
      { ...credential, by: null, configurationId: 'site-permit' },
    ]);
    // A time ahead of the clock counts as now.
    expect(await stored('CredentialStatusChanged')).toEqual([
      { ...credential, by: person, status: 'Revoked' },
    ]);
    expect(await stored('PresentationNotTrusted')).toEqual([
      {
        at,
        by: null,
        success: false,
        resourceType: 'presentation-request',
        resourceId: 'r1',
        reason: 'TRUST_ISSUER_NOT_LISTED',
      },
    ]);
  });

  it.each([
    { kind: 0 },
    { kind: 9 },
    { eventId: 'x' },
    { detail: '' },
    { resourceId: 'two\nlines' },
    { organizationId: 'acme' },
    { platformUserId: 'anna' },
    { occurredAtMs: -1n },
  ])('rejects a request with %o as a whole', async (change) => {
    await expect(record([event({ resourceId: 'half' }), event(change)])).rejects.toMatchObject({
      kind: 'invalid',
    });
    expect(JSON.stringify(await stored('CredentialIssued'))).not.toContain('half');
  });

  it('rejects more than 500 events, other services, and a token without the scope', async () => {
    const many = Array.from({ length: 501 }, () => event());
    await expect(record(many)).rejects.toMatchObject({ kind: 'invalid' });
    await expect(record([event()], 'service-wallet')).rejects.toMatchObject({ kind: 'forbidden' });
    await expect(record([event()], 'service-credential', [])).rejects.toMatchObject({ kind: 'forbidden' });
  });
});
