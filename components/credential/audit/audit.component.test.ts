import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { caller, type Fixture, openFixture, startMs } from '../testing/fixture.ts';
import { Presenter } from '../testing/presenter.ts';
import { auditReports } from './report.ts';
import type { StoredEvent } from './store.ts';

let fixture: Fixture;
let presenter: Presenter;
const signal = new AbortController().signal;
const untrusted = { trustPolicy: { sources: [{ kind: 'did-allowlist', allowedIssuers: ['did:x:y'] }] } };

beforeAll(async () => {
  fixture = await openFixture('credential_audit');
  presenter = new Presenter(fixture);
});

afterAll(() => fixture.close());

/** What one run reports. */
async function reported(send?: (events: readonly StoredEvent[]) => Promise<void>) {
  const events: StoredEvent[] = [];
  const job = auditReports({
    db: fixture.db,
    send: async (some) => {
      await send?.(some);
      events.push(...some);
    },
  });
  await job.run(signal);
  return events;
}

describe('events for the audit log', () => {
  test('tell of issued credentials and of changes of their status, each once', async () => {
    const { organizationId } = fixture.organization;
    const person = caller({ organizationId, roles: ['Administrator'] });
    fixture.callers.set('Bearer admin', person);
    const held = await presenter.hold();
    const suspended = await fixture.app.inject({
      method: 'POST',
      url: `/api/v1/credentials/${held.credentialId}/suspend`,
      headers: { authorization: 'Bearer admin' },
      payload: { reason: 'test' },
    });
    expect(suspended.statusCode).toBe(200);
    const events = await reported();
    const common = { organizationId, resourceId: held.credentialId, at: new Date(startMs) };
    expect(events.map(({ id: _, ...event }) => event)).toEqual(
      expect.arrayContaining([
        {
          ...common,
          kind: 'issued',
          detail: expect.stringContaining('site-permit'),
          platformUserId: undefined,
        },
        { ...common, kind: 'statusChanged', detail: 'Suspended', platformUserId: person.platformUserId },
      ]),
    );
    expect(events).toHaveLength(2);
    expect(await reported()).toEqual([]);
  });

  test('wait for the tenant service, and keep their ids when a report is repeated', async () => {
    await presenter.hold();
    const seen: string[][] = [];
    const away = reported(async (events) => {
      seen.push(events.map(({ id }) => id));
      throw new Error('the answer is lost');
    });
    await expect(away).rejects.toThrow('the answer is lost');
    const again = await reported();
    expect(seen).toEqual([again.map(({ id }) => id)]);
  });

  test('tell an organisation of an issuer that is not trusted', async () => {
    const held = await presenter.hold();
    await reported();
    const organizationId = '0190a5b2-7c3d-4e4f-8a1b-2c3d4e5f6a7b';
    fixture.callers.set('Bearer officer', caller({ organizationId, roles: ['User'] }));
    const { requestId } = (await presenter.ask(untrusted, 'Bearer officer')).json();
    const request = await presenter.open(requestId);
    const answer = { credential: [await presenter.present(held, request)] };
    await presenter.answer(requestId, request, answer);
    // The second answer has no effect.
    await presenter.answer(requestId, request, answer);
    expect(await reported()).toMatchObject([
      { organizationId, kind: 'notTrusted', resourceId: requestId, detail: 'TRUST_ISSUER_NOT_LISTED' },
    ]);
    // A service that acts for no organisation has no audit log.
    await presenter.verified(held, untrusted);
    expect(await reported()).toEqual([]);
  });

  test('are counted by the meter', async () => {
    const metrics = await fixture.runtime.telemetry.registry.metrics();
    expect(metrics).toMatch(/credentials_issued_total\{format="dc\+sd-jwt"\} 3\n/);
    expect(metrics).toMatch(/status_changes_total\{status="Suspended"\} 1\n/);
    expect(metrics).toMatch(/presentations_total\{result="failed"\} 2\n/);
  });
});
