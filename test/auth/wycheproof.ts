/** One vector: what it is called there, what is to come of it, what it is about, and the token. */
interface Vector {
  alg: string;
  /** The bytes of its key, base64url. */
  key: string;
  id: string;
  isValid: boolean;
  about: string;
  token: string;
}

/**
 * From Wycheproof (https://github.com/C2SP/wycheproof, Apache License 2.0), `testvectors_v1/json_web_signature_test.json`,
 * `json_web_crypto_test.json` and `json_web_key_test.json`: all that verify a JWS with one symmetric key of 32 bytes
 * or more (shorter ones cannot be configured, J34), in a form of our own. An id is the file and its `tcId`. A vector of
 * two files is listed once. The vectors of a key, each as `id|verdict|about|token`, follow its algorithm and the key.
 */
export const wycheproof = parse(String.raw`
HS256 -ebuDNsVZ2iJtoZ-akfXTSCt4UO2cruLCsbWlBinggE
signature 1|valid|accepts valid|eyJhbGciOiJIUzI1NiIsImtpZCI6ImtpZC1hZXMtc2lnbiJ9.Zm9v.TD37p4c_0jmreSrBSDmE0F3mYSPtkZ3WrSyI5wb_KTg
signature 2|invalid|rejects modified signature|eyJhbGciOiJIUzI1NiIsImtpZCI6ImtpZC1hZXMtc2lnbiJ9.Zm9v.XD37p4c_0jmreSrBSDmE0F3mYSPtkZ3WrSyI5wb_KTg
signature 3|invalid|rejects missing signature|eyJhbGciOiJIUzI1NiIsImtpZCI6ImtpZC1hZXMtc2lnbiJ9.Zm9v.
signature 4|invalid|rejects missing signature and separator|eyJhbGciOiJIUzI1NiIsImtpZCI6ImtpZC1hZXMtc2lnbiJ9.Zm9v
signature 5|invalid|rejects modified payload|eyJhbGciOiJIUzI1NiIsImtpZCI6ImtpZC1hZXMtc2lnbiJ9.WG9v.TD37p4c_0jmreSrBSDmE0F3mYSPtkZ3WrSyI5wb_KTg
signature 6|invalid|rejects missing payload|eyJhbGciOiJIUzI1NiIsImtpZCI6ImtpZC1hZXMtc2lnbiJ9..TD37p4c_0jmreSrBSDmE0F3mYSPtkZ3WrSyI5wb_KTg
signature 7|invalid|rejects missing payload and separator|eyJhbGciOiJIUzI1NiIsImtpZCI6ImtpZC1hZXMtc2lnbiJ9.TD37p4c_0jmreSrBSDmE0F3mYSPtkZ3WrSyI5wb_KTg
signature 8|invalid|rejects modified header|eyJhbGciOiJIUzI1NiIsImtpZCI6IlhpZC1hZXMtc2lnbiJ9.Zm9v.TD37p4c_0jmreSrBSDmE0F3mYSPtkZ3WrSyI5wb_KTg
signature 9|invalid|rejects missing header|.Zm9v.TD37p4c_0jmreSrBSDmE0F3mYSPtkZ3WrSyI5wb_KTg
signature 10|invalid|rejects missing header and separator|Zm9v.TD37p4c_0jmreSrBSDmE0F3mYSPtkZ3WrSyI5wb_KTg
signature 11|invalid|rejects missing header and signature|.Zm9v.
signature 12|invalid|rejects missing header signature and separators|Zm9v
signature 13|invalid|rejects empty string|
signature 14|invalid|rejects extra empty component|eyJhbGciOiJIUzI1NiIsImtpZCI6ImtpZC1hZXMtc2lnbiJ9.Zm9v.TD37p4c_0jmreSrBSDmE0F3mYSPtkZ3WrSyI5wb_KTg.
signature 15|invalid|rejects extra component|eyJhbGciOiJIUzI1NiIsImtpZCI6ImtpZC1hZXMtc2lnbiJ9.Zm9v.TD37p4c_0jmreSrBSDmE0F3mYSPtkZ3WrSyI5wb_KTg.foo
signature 16|invalid|rejects none algorithm and missing signature|eyJhbGciOiJub25lIiwia2lkIjoia2lkLWFlcy1zaWduIn0.Zm9v.
signature 17|invalid|rejects valid json serialization|{"payload":"Zm9v","signatures":[{"protected":"eyJhbGciOiJIUzI1NiIsImtpZCI6ImtpZC1hZXMtc2lnbiJ9","header":{"unknown":"untrustworthy"},"signature":"TD37p4c_0jmreSrBSDmE0F3mYSPtkZ3WrSyI5wb_KTg"}
crypto 17|invalid|rejects valid json serialization|{"payload":"Zm9v","signatures":[{"protected":"eyJhbGciOiJIUzI1NiIsImtpZCI6ImtpZC1hZXMtc2lnbiJ9","header":{"unknown":"untrustworthy"},"signature":"TD37p4c_0jmreSrBSDmE0F3mYSPtkZ3WrSyI5wb_KTg"}]}
HS256 hJtXIZ2uSN5kbQfbtTNWbpdmhkV8FJG-Onbc6mxCcYg
signature 348|valid|figure35|eyJhbGciOiJIUzI1NiIsImtpZCI6IjAxOGMwYWU1LTRkOWItNDcxYi1iZmQ2LWVlZjMxNGJjNzAzNyJ9.SXTigJlzIGEgZGFuZ2Vyb3VzIGJ1c2luZXNzLCBGcm9kbywgZ29pbmcgb3V0IHlvdXIgZG9vci4gWW91IHN0ZXAgb250byB0aGUgcm9hZCwgYW5kIGlmIHlvdSBkb24ndCBrZWVwIHlvdXIgZmVldCwgdGhlcmXigJlzIG5vIGtub3dpbmcgd2hlcmUgeW91IG1pZ2h0IGJlIHN3ZXB0IG9mZiB0by4.s0h6KThzkfBBBkLspW1h84VsJZFTsPPqMDA7g1Md7p0
HS256 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
signature 357|valid|valid mac|eyJraWQiOiJoczI1Ni1rZXkiLCJhbGciOiJIUzI1NiJ9.VGVzdA.c1LROH7eNQwUT8KMVEO52VC3WZ9e_AnDWbZ7aMmowV8
signature 358|valid|valid edge case mac|eyJraWQiOiJoczI1Ni1rZXkiLCJhbGciOiJIUzI1NiJ9.VDIxMzI1NjY4.AAAAtBuQqoI9HuBeAsgjL4nx8sCGYJa5-G2OrureLO4
signature 359|valid|valid edge case mac|eyJraWQiOiJoczI1Ni1rZXkiLCJhbGciOiJIUzI1NiJ9.VDgxMjM0MTM.____ETVRY0lRV9XgQeYX6ixdGT0NLHYb-wZem_ifJ5k
signature 360|invalid|rejects spaces in mac|eyJraWQiOiJoczI1Ni1rZXkiLCJhbGciOiJIUzI1NiJ9.VGVzdA.    c1LROH7eNQwUT8KMVEO52VC3WZ9e_AnDWbZ7aMmowV8
signature 361|invalid|rejects invalid character inserted in mac|eyJraWQiOiJoczI1Ni1rZXkiLCJhbGciOiJIUzI1NiJ9.VGVzdA.?c1LROH7eNQwUT8KMVEO52VC3WZ9e_AnDWbZ7aMmowV8
signature 362|invalid|rejects invalid character inserted in mac|eyJraWQiOiJoczI1Ni1rZXkiLCJhbGciOiJIUzI1NiJ9.VGVzdA.c1LROH7eNQwUT8KMVEO52VC3WZ9e_AnDWbZ7aMmowV8?
signature 363|invalid|rejects0 replacedby invalid character|eyJraWQiOiJoczI1Ni1rZXkiLCJhbGciOiJIUzI1NiJ9.VDIxMzI1NjY4.?AAAtBuQqoI9HuBeAsgjL4nx8sCGYJa5-G2OrureLO4
signature 364|invalid|rejects invalid characters|eyJraWQiOiJoczI1Ni1rZXkiLCJhbGciOiJIUzI1NiJ9.VDgxMjM0MTM.????ETVRY0lRV9XgQeYX6ixdGT0NLHYb-wZem_ifJ5k
signature 365|invalid|spaces in header|eyJraWQiOiJoczI1Ni1rZXkiLCJhbGciOiJIUzI1NiJ9    .VGVzdA.DR-cdw2cCB53b3mpzMfk2gKTeyN0PhXBrTW1atMfSdM
signature 366|invalid|invalid characters in header|eyJraWQiOiJoczI1Ni1rZXkiLCJhbGciOiJIUzI1NiJ9####.VGVzdA.23srvDiEYo7665_26qKv4D-0E2a149WRWH_av2ki2I4
signature 367|invalid|invalid base64 padding|eyJraWQiOiJoczI1Ni1rZXkiLCJhbGciOiJIUzI1NiJ9.VGVzdA.c1LROH7eNQwUT8KMVEO52VC3WZ9e_AnDWbZ7aMmowV8
signature 368|invalid|spaces in payload|eyJraWQiOiJoczI1Ni1rZXkiLCJhbGciOiJIUzI1NiJ9.    VGVzdA.AbPJgmXfihyNBUYpbdPK8qRpPjNuTE-Z_wYQyrU2lMQ
signature 369|invalid|invalid characters in payload|eyJraWQiOiJoczI1Ni1rZXkiLCJhbGciOiJIUzI1NiJ9.####VGVzdA.Ixs2CdBkk8qjqe2-hq2dobqVvv9iDcDS6gPNgoXJyFY
signature 370|invalid|invalid base64 padding in payload|eyJraWQiOiJoczI1Ni1rZXkiLCJhbGciOiJIUzI1NiJ9.VGVzdA.c1LROH7eNQwUT8KMVEO52VC3WZ9e_AnDWbZ7aMmowV8
signature 371|invalid|invalid character in payload|eyJraWQiOiJoczI1Ni1rZXkiLCJhbGciOiJIUzI1NiJ9.?VGVzdA.q0zEA3Js33N6HcOFfBK875qJ_nFwSzI9SN9qJnx5sOc
signature 372|valid|invalid character inserted in header|eyJraWQiOiJoczI1Ni1rZXkiLCJhbGciOiJIUzI1NiJ?9.VGVzdA.c1LROH7eNQwUT8KMVEO52VC3WZ9e_AnDWbZ7aMmowV8
signature 373|valid|invalid character inserted in payload|eyJraWQiOiJoczI1Ni1rZXkiLCJhbGciOiJIUzI1NiJ9.VGVzdA?.c1LROH7eNQwUT8KMVEO52VC3WZ9e_AnDWbZ7aMmowV8
signature 374|invalid|modified unused bits in payload|eyJraWQiOiJoczI1Ni1rZXkiLCJhbGciOiJIUzI1NiJ9.AB.8sL_ycV8G_D-K_2A3I0EW3NoPMeQzv13cAzuHlQ5TAE
signature 375|invalid|mac of incorrectly encoded message|eyJraWQiOiJoczI1Ni1rZXkiLCJhbGciOiJIUzI1NiJ9.AB.9phoKDvkBMAqTgeVIYeqAi6-lvC0pbKg9ER--3T97w0
signature 376|valid|valid spaces in json header|eyAia2lkIiA6ICJoczI1Ni1rZXkiLCAiYWxnIiA6ICJIUzI1NiIgfQ.VGVzdA.3nl1C7dKVGLfNyALp4ZKkmNFBJlFP8M9VGzCyil9S1c
signature 377|valid|valid white space in json header|eyJraWQiOiJoczI1Ni1rZXkiLAoJImFsZyI6IkhTMjU2In0.VGVzdA.Yxn8cTl7IHpFIoEPOFrWmjm-GQlr_RMqHNJOp1ZuweY
HS384 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4
key 11|invalid|key too short|eyJhbGciOiJIUzM4NCIsImtpZCI6InNob3J0X2hzMzg0X2tleSJ9.Zm9v.TKvI_fld4zqTKPhLBgiDArC88o2Lr4XyabrrD50VJUPQGev0k_q3g2kTIgK6evi8
HS512 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0-
key 12|invalid|key too short|eyJhbGciOiJIUzUxMiIsImtpZCI6InNob3J0X2hzNTEyX2tleSJ9.Zm9v.8e1Oohdq6XP8EjQUEpX-E5fdbj9GG4JscFqPfxdN86R6DdFiRLXW6l0FZ5k4m-itvXSKDLvIsrdtJ6rZriHWiw
HS256 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0-P0A
key 13|valid|long key|eyJhbGciOiJIUzI1NiIsImtpZCI6ImxvbmdfaHMyNTZfa2V5In0.Zm9v.21LcS4mucXHeWxB34_udiXxb3M3MHd0127KdnfF726o
HS384 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0-P0A
key 14|valid|long key|eyJhbGciOiJIUzM4NCIsImtpZCI6ImxvbmdfaHMzODRfa2V5In0.Zm9v.Ets-iThpZ2a7MChVHGPUIddl87WDNMWBXzUuaqqwXhy1JQJ2e7qzF395b8dTM8XE
HS512 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0-P0A
key 15|valid|long key|eyJhbGciOiJIUzUxMiIsImtpZCI6ImxvbmdfaHM1MTJfa2V5In0.Zm9v.QNYWqEdHjNGYfU3_Nf-ZfwaTuW9sNCtzQCNYcp64VJJPeFzph9CsN2CbBhCa2LKTJ7xXwpZPyS3KkwqLAwy17g
`);

function parse(lines: string): Vector[] {
  let [alg, key] = ['', ''];
  return lines
    .slice(1, -1)
    .split('\n')
    .flatMap((line) => {
      const [id = '', verdict, about = '', ...token] = line.split('|');
      if (verdict === undefined) {
        [alg = '', key = ''] = line.split(' ');
        return [];
      }
      return [{ alg, key, id, isValid: verdict === 'valid', about, token: token.join('|') }];
    });
}
