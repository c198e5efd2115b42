import type { Reader, Transactor } from '#kit/db/db.ts';
import type { HelloDatabase } from '../database/schema.ts';

/** The greeting of a person. */
export async function findGreeting(db: Reader<HelloDatabase>, subject: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('greetings')
    .select('greeting')
    .where('subject', '=', subject)
    .executeTakeFirst();
  return row?.greeting;
}

/** Stores the greeting of a person, in place of an earlier one. */
export async function putGreeting(
  tx: Transactor<HelloDatabase>,
  subject: string,
  greeting: string,
): Promise<void> {
  await tx
    .insertInto('greetings')
    .values({ subject, greeting })
    .onConflict((conflict) => conflict.column('subject').doUpdateSet({ greeting }))
    .execute();
}
