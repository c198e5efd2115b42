import { readFile } from 'node:fs/promises';
import type { TestTenant } from '../../tenant.fixture.ts';
import { createProtection } from '../../tokens/keys/protection.ts';
import { type Mail, messageSchema } from './message.ts';
import { placeOfMessage } from './queue.ts';

/** The queued mails to an address, in the order in which they were written. */
export async function readMails(tenant: Pick<TestTenant, 'db' | 'files'>, address: string): Promise<Mail[]> {
  const protection = createProtection(await readFile(tenant.files.env['CHANCERY_PROTECTION_KEY_FILE'] ?? ''));
  const rows = await tenant.db.read.selectFrom('messages').selectAll().orderBy('id').execute();
  return rows.flatMap(({ id, sealed }) => {
    const message = messageSchema.parse(JSON.parse(protection.open(sealed, placeOfMessage(id)).toString()));
    return message.channel === 'mail' && message.to === address ? [message] : [];
  });
}
