import { describe, expect, it } from 'vitest';
import { tenantSettings } from '../../config.ts';
import { relyingPartyOf } from './ceremony.ts';

const unset = { rpId: undefined, rpName: undefined, origins: [], installation: 'Main' };

describe('the relying party', () => {
  it('has the host and the origin of the base URL, and the name of the installation', () => {
    expect(relyingPartyOf({ ...unset, baseUrl: 'https://ledger.example.org:8443' })).toEqual({
      id: 'ledger.example.org',
      name: 'Main',
      origins: ['https://ledger.example.org:8443'],
    });
    expect(relyingPartyOf({ ...unset, baseUrl: 'http://localhost:8080' })).toMatchObject({
      id: 'localhost',
      origins: ['http://localhost:8080'],
    });
  });

  it.each(['http://127.0.0.1:8080', 'http://[::1]:8080', 'http://2130706433'])(
    '%s is no domain',
    (baseUrl) => {
      expect(relyingPartyOf({ ...unset, baseUrl }).id).toBeUndefined();
    },
  );

  it('has the settings where there are any', () => {
    const settings = { rpId: 'example.org', rpName: 'Registry', origins: ['https://a.example.org'] };
    const baseUrl = 'http://127.0.0.1:8080';
    expect(relyingPartyOf({ ...unset, ...settings, baseUrl })).toEqual({
      id: 'example.org',
      name: 'Registry',
      origins: ['https://a.example.org'],
    });
  });

  it.each(['127.0.0.1', 'Example.org', 'https://example.org', 'example.org:8080', ''])(
    'CHANCERY_PASSKEY_RP_ID=%s is refused',
    (domain) => {
      const { CHANCERY_PASSKEY_RP_ID: setting } = tenantSettings.shape;
      expect(setting.safeParse('example.org').success).toBe(true);
      expect(setting.safeParse(domain).success).toBe(false);
    },
  );
});
