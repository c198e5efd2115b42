import { argv, env, execve, exit, stderr } from 'node:process';
import { AppError } from '#core/errors/errors.ts';
import { ConfigError, loadConfig } from '#kit/config/config.ts';
import { prepareData } from './prepare.ts';
import { serverProgram, serverWords } from './server.ts';
import { postgresSettings } from './settings.ts';

// The entry of the PostgreSQL image: prepares the data and becomes the server, which then gets all signals itself.
// Words of the container are handed to the server: `-c max_connections=200`.
try {
  const settings = loadConfig(postgresSettings, env);
  await prepareData(settings);
  const certificate = settings.POSTGRES_TLS_CERT_FILE;
  const key = settings.POSTGRES_TLS_KEY_FILE;
  const tls =
    certificate === undefined
      ? []
      : ['-c', 'ssl=on', '-c', `ssl_cert_file=${certificate}`, '-c', `ssl_key_file=${key ?? ''}`];
  const words = serverWords(settings.POSTGRES_DATA, '*', [...tls, ...argv.slice(2)]);
  execve?.(serverProgram, [serverProgram, ...words], { TZ: 'UTC' });
} catch (error) {
  if (!(error instanceof Error)) throw error;
  stderr.write(
    `postgres: ${error instanceof AppError || error instanceof ConfigError ? error.message : error.stack}\n`,
  );
  exit(error instanceof ConfigError ? 78 : 1);
}
