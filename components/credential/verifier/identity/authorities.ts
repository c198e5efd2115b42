import { existsSync, readFileSync } from 'node:fs';
import { splitPem } from '#core/encoding/pem.ts';
import { type Certificate, findCertificate } from '#core/trust/certificate.ts';
import { ConfigError } from '#kit/config/config.ts';

/** The certificates of a PEM file. @throws ConfigError naming the setting */
export function readAuthorities(name: string, path: string): readonly Certificate[] {
  if (!existsSync(path)) throw new ConfigError([{ name, message: 'the file does not exist' }]);
  const ders = splitPem(readFileSync(path, 'utf8'))?.certificates ?? [];
  if (ders.length === 0) throw new ConfigError([{ name, message: 'the file has no certificate' }]);
  return ders.map((der, index) => {
    const certificate = findCertificate(der);
    if (certificate !== undefined) return certificate;
    throw new ConfigError([{ name, message: `certificate ${index + 1} of the file cannot be read` }]);
  });
}
