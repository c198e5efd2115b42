import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { refusal } from '../../errors.ts';

const clientIdPattern = /^(?:service|validator)-[a-z0-9][a-z0-9.-]{0,100}$/;
const secretPattern = /^[A-Za-z0-9_-]{43}$/;

/**
 * Reads `<client_id>` files of 32 random bytes as base64url. Throws for a malformed file and one readable by others.
 */
export async function readServiceSecrets(
  directory: string | undefined,
): Promise<ReadonlyMap<string, string>> {
  const secrets = new Map<string, string>();
  if (directory === undefined) return secrets;
  const names = (await readdir(directory)).filter((name) => clientIdPattern.test(name));
  for (const name of names) secrets.set(name, await readSecret(join(directory, name), name));
  return secrets;
}

async function readSecret(path: string, name: string): Promise<string> {
  const { mode } = await stat(path);
  if ((mode & 0o007) !== 0) {
    throw refusal('SECRET_FILE_OPEN', {
      message: `the secret file of ${name} is accessible to other users; set its mode to 0640`,
    });
  }
  const text = (await readFile(path, 'utf8')).trim();
  if (!secretPattern.test(text)) {
    const message = `the secret file of ${name} does not hold 32 bytes as base64url`;
    throw refusal('SECRET_FILE_MALFORMED', { message });
  }
  return text;
}
