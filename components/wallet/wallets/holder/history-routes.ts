import { z } from 'zod';
import { readableLine } from '#core/encoding/readable.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import type { Database } from '#kit/db/db.ts';
import { type App, addRoute, empty, json } from '#kit/http/http.ts';
import { PRESENTATION_OUTCOMES, type WalletDatabase } from '../../database/schema.ts';
import { refusals } from '../../errors.ts';
import { personOf } from '../../grants/authority.ts';
import { deletePresentation, listPresentations, type Presentation, storePresentations } from './store.ts';

export interface HistoryDeps {
  readonly db: Database<WalletDatabase>;
}

const route = { tag: 'Holder', policy: 'RequireConsumerAudience', rateLimit: 'Strict' } as const;
const path = '/api/v1/wallet/presentations';
const mostReports = 50;
const uuid = z.uuid();

const reportSchema = z.strictObject({
  id: uuid.describe('Chosen by the wallet app; a repeated report of the id replaces the entry.'),
  credentialId: readableLine.min(1).max(200),
  verifierLabel: readableLine.max(200).nullish(),
  verifierDid: readableLine.max(200).nullish(),
  disclosedClaims: z.array(readableLine.min(1).max(200)).max(64).describe('Names, never values.'),
  presentedAt: z.iso.datetime({ offset: true }).refine((text) => Date.parse(text) >= 0, 'is before 1970'),
  outcome: z.enum(PRESENTATION_OUTCOMES),
});

const reportBody = z.union([
  reportSchema,
  z.strictObject({ entries: z.array(reportSchema).min(1).max(mostReports) }),
]);

const historySchema = z.object({
  entries: z.array(
    z.object({
      id: z.string(),
      credentialId: z.string(),
      verifierLabel: z.string().nullable(),
      verifierDid: z.string().nullable(),
      disclosedClaims: z.array(z.string()),
      presentedAt: z.string(),
      outcome: z.enum(PRESENTATION_OUTCOMES),
      registerId: z.string().nullable().describe('Always null.'),
      actionTxId: z.string().nullable().describe('Always null.'),
    }),
  ),
});

const exampleReport: z.input<typeof reportSchema> = {
  id: '0b8f2d4e-6a51-4f0c-9d3a-2f7c6f1f9a10',
  credentialId: 'urn:uuid:7d5f1c9e-4f7b-4b61-8b2a-91c54c3a7b55',
  verifierLabel: 'City library',
  disclosedClaims: ['given_name', 'age_over_18'],
  presentedAt: '2026-11-25T18:00:00Z',
  outcome: 'Presented',
};

/** The history of the caller's presentations, as their wallet app reports it. */
export function mountHistoryRoutes(app: App, { db }: HistoryDeps): void {
  addRoute(app, {
    ...route,
    method: 'GET',
    path,
    operationId: 'listPresentations',
    summary: 'The history of presentations of the caller, newest first, 500 entries at most',
    answers: { 200: json('The entries.', historySchema) },
    refusals: refusals('PERSON_REQUIRED'),
    noStore: true,
    handle: async ({ caller }) => ({
      entries: (await listPresentations(db.read, personOf(caller))).map(presentEntry),
    }),
  });

  addRoute(app, {
    ...route,
    method: 'DELETE',
    path: `${path}/:id`,
    operationId: 'deletePresentation',
    summary: 'Delete an entry of the history of the caller',
    params: z.object({ id: z.string() }),
    answers: { 204: empty('The caller has no such entry.') },
    refusals: refusals('PERSON_REQUIRED'),
    handle: async ({ caller, params }) => {
      const person = personOf(caller);
      const id = uuid.safeParse(params.id).data;
      if (id !== undefined) await db.transact((tx) => deletePresentation(tx, person, id));
    },
  });

  addRoute(app, {
    ...route,
    method: 'POST',
    path: `${path}/log`,
    operationId: 'reportPresentations',
    summary: 'Report presentations: one, or up to 50',
    body: { schema: reportBody, example: exampleReport },
    answers: { 204: empty('The entries are stored.') },
    refusals: refusals('PERSON_REQUIRED'),
    handle: async ({ caller, body }) => {
      const person = personOf(caller);
      const reports = parseReports(body);
      await db.transact((tx) => storePresentations(tx, person, reports));
    },
  });
}

/** One report an id, the last of a request; in the order of ids, so that concurrent requests do not deadlock. */
function parseReports(body: z.output<typeof reportBody>): Presentation[] {
  const reports = 'entries' in body ? body.entries : [body];
  const byId = new Map(reports.map((report) => [report.id.toLowerCase(), report]));
  return [...byId]
    .map(([id, { verifierLabel = null, verifierDid = null, presentedAt, ...rest }]) => ({
      ...rest,
      id,
      verifierLabel,
      verifierDid,
      presentedAtMs: Date.parse(presentedAt),
    }))
    .toSorted((left, right) => (left.id < right.id ? -1 : 1));
}

function presentEntry({
  presentedAtMs,
  ...entry
}: Presentation): z.input<typeof historySchema>['entries'][number] {
  return {
    ...entry,
    disclosedClaims: [...entry.disclosedClaims],
    presentedAt: apiTimestamp(presentedAtMs),
    registerId: null,
    actionTxId: null,
  };
}
