import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { type Certificate, parseCertificate } from '#core/trust/certificate.ts';
import { ConfigError } from '#kit/config/config.ts';

const pemBlock = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The certificates of a PEM file. @throws ConfigError naming the setting */
export function readAuthorities(name: string, path: string): readonly Certificate[] {
  if (!existsSync(path)) throw new ConfigError([{ name, message: 'the file does not exist' }]);
  const blocks = readFileSync(path, 'utf8').match(pemBlock) ?? [];
  if (blocks.length === 0) throw new ConfigError([{ name, message: 'the file has no certificate' }]);
  return blocks.map((block) => parseCertificate(new X509Certificate(block).raw));
}
