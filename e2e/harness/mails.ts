import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from './wait.ts';

/** Mails of local mode to an address, the oldest first, as a person reads them. */
export function readMails(dataDir: string, address: string): readonly string[] {
  const folder = join(dataDir, 'mail');
  const mails = readdirSync(folder)
    .toSorted()
    .map((file) => readFileSync(join(folder, file), 'utf8'));
  // quoted-printable (RFC 2045, 6.7)
  const texts = mails.map((mail) => mail.replaceAll('=\n', '').replaceAll('=3D', '='));
  return texts.filter((text) => text.includes(`To: ${address}\n`));
}

/** The last link to a page of `/auth/` in the mails to an address; waits for the first one. */
export function linkTo(dataDir: string, address: string, page: string): Promise<string> {
  const pattern = new RegExp(`http://\\S+/auth/${page}#token=\\S+`, 'g');
  return until(`a mail to ${address}`, 15_000, async () =>
    readMails(dataDir, address).join('\n').match(pattern)?.at(-1),
  );
}
