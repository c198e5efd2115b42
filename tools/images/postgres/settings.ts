import { z } from 'zod';
import { secretFile } from '#kit/config/config.ts';

const name = z.string().regex(/^[a-z_][a-z0-9_]{0,62}$/, 'expected a lower-case SQL name');

/** What a container of PostgreSQL reads from its environment. */
export const postgresSettings = z.object({
  POSTGRES_DATA: z
    .string()
    .regex(/^\/.+[^/]$/, 'expected an absolute path')
    .default('/var/lib/postgresql/data')
    .describe(
      'Folder of the database, made at the first start: a folder below a volume, not the volume itself.',
    ),
  POSTGRES_PASSWORD_FILE: secretFile.describe(
    'File with the password of the superuser; read at every start.',
  ),
  POSTGRES_USER: name.default('postgres').describe('Name of the superuser, from the first start on.'),
  POSTGRES_DB: name.default('postgres').describe('Database made at the first start.'),
  POSTGRES_INIT_DIR: z
    .string()
    .default('/etc/postgres/init')
    .describe(
      'Folder of *.sql files that every start runs in POSTGRES_DB, by name, so each must be repeatable; it may be missing.',
    ),
  POSTGRES_TLS_CERT_FILE: z.string().optional().describe('Certificate chain; with it only TLS is accepted.'),
  POSTGRES_TLS_KEY_FILE: z.string().optional().describe('Key of POSTGRES_TLS_CERT_FILE.'),
});

export type PostgresSettings = z.output<typeof postgresSettings>;
