import 'reflect-metadata';
import { X509CrlReason } from '@peculiar/x509';

const REASONS: Readonly<Record<string, X509CrlReason>> = {
  keyCompromise: X509CrlReason.keyCompromise,
  affiliationChanged: X509CrlReason.affiliationChanged,
  superseded: X509CrlReason.superseded,
  cessationOfOperation: X509CrlReason.cessationOfOperation,
  privilegeWithdrawn: X509CrlReason.privilegeWithdrawn,
};

/** The CRLReason of RFC 5280, section 5.3.1, whose name the text is; undefined for other text, which no list shows. */
export function findReason(text: string): X509CrlReason | undefined {
  return Object.hasOwn(REASONS, text) ? REASONS[text] : undefined;
}
