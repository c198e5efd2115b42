import { readFile } from 'node:fs/promises';
import type { TestTenant } from '../../tenant.fixture.ts';
import { createProtection } from '../../tokens/keys/protection.ts';
import { type Mail, type Message, messageSchema, type TextMessage } from './message.ts';
import { placeOfMessage } from './queue.ts';

type Source = Pick<TestTenant, 'db' | 'files'>;

async function readMessages(tenant: Source): Promise<Message[]> {
  const protection = createProtection(await readFile(tenant.files.env['CHANCERY_PROTECTION_KEY_FILE'] ?? ''));
  const rows = await tenant.db.read.selectFrom('messages').selectAll().orderBy('id').execute();
  return rows.map(({ id, sealed }) =>
    messageSchema.parse(JSON.parse(protection.open(sealed, placeOfMessage(id)).toString())),
  );
}

/** The queued mails to an address, in the order in which they were written. */
export async function readMails(tenant: Source, address: string): Promise<Mail[]> {
  const all = await readMessages(tenant);
  return all.filter((message): message is Mail => message.channel === 'mail' && message.to === address);
}

/** The same for text messages to a number. */
export async function readTexts(tenant: Source, phone: string): Promise<TextMessage[]> {
  const all = await readMessages(tenant);
  return all.filter((message): message is TextMessage => message.channel === 'sms' && message.to === phone);
}
