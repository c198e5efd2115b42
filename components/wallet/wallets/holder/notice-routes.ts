import { z } from 'zod';
import { readableName } from '#core/encoding/readable.ts';
import { apiTimestamp } from '#core/encoding/timestamp.ts';
import type { Database } from '#kit/db/db.ts';
import { type App, addRoute, empty, json } from '#kit/http/http.ts';
import type { WalletDatabase } from '../../database/schema.ts';
import { refusal, refusals } from '../../errors.ts';
import { personOf } from '../../grants/authority.ts';
import { deleteNotice, findNotice, type Notice, storeNotice } from './store.ts';

interface NoticeDeps {
  readonly db: Database<WalletDatabase>;
}

const route = {
  path: '/api/v1/wallet/pending-applications',
  tag: 'Holder',
  policy: 'RequireConsumerAudience',
  rateLimit: 'Strict',
} as const;

const mostCharacters = 80;

/** Longer texts are no label, whatever their white space. */
const noticeBody = z.object({
  label: z.string().max(4_096).describe('One line of 1 to 80 characters, without the white space around it.'),
});

const noticeSchema = z.object({
  notice: z
    .object({ label: z.string(), setAt: z.string() })
    .nullable()
    .describe('Null when there is none; a notice expires 24 hours after it was set.'),
});

/** The notice that the caller waits for a credential. */
export function mountNoticeRoutes(app: App, { db }: NoticeDeps): void {
  addRoute(app, {
    ...route,
    method: 'GET',
    operationId: 'getApplicationNotice',
    summary: 'The notice of a pending application of the caller',
    answers: { 200: json('The notice, or null.', noticeSchema) },
    refusals: refusals('PERSON_REQUIRED'),
    noStore: true,
    handle: async ({ caller }) => presentNotice(await findNotice(db.read, personOf(caller))),
  });

  addRoute(app, {
    ...route,
    method: 'PUT',
    operationId: 'storeApplicationNotice',
    summary: 'Set the notice of a pending application; it replaces an earlier one',
    body: { schema: noticeBody, example: { label: 'Building permit, City of Ghent' } },
    answers: { 200: json('The notice.', noticeSchema) },
    refusals: refusals('PERSON_REQUIRED', 'LABEL_INVALID'),
    noStore: true,
    handle: async ({ caller, body }) => {
      const person = personOf(caller);
      const label = parseLabel(body.label);
      return presentNotice(await db.transact((tx) => storeNotice(tx, person, label)));
    },
  });

  addRoute(app, {
    ...route,
    method: 'DELETE',
    operationId: 'deleteApplicationNotice',
    summary: 'Clear the notice of a pending application',
    answers: { 204: empty('There is none.') },
    refusals: refusals('PERSON_REQUIRED'),
    handle: async ({ caller }) => {
      const person = personOf(caller);
      await db.transact((tx) => deleteNotice(tx, person));
    },
  });
}

function parseLabel(text: string): string {
  const label = text.trim();
  if ([...label].length > mostCharacters || !readableName.safeParse(label).success) {
    throw refusal('LABEL_INVALID');
  }
  return label;
}

function presentNotice(notice: Notice | undefined): z.input<typeof noticeSchema> {
  if (notice === undefined) return { notice: null };
  return { notice: { label: notice.label, setAt: apiTimestamp(notice.setAtMs) } };
}
