"""The audit: one redacted record for every answer, in an append-only chain for each tenant.

A record has two parts. The **link** says when which turn ended how, and holds a digest; it carries nothing about a
person. The **content** (question, answer, what it stood on) is kept beside it and can be erased. The digest covers the
content and a random salt that is erased with it, so a link never tells what was said, and nobody can find out by
guessing, while the chain still verifies.

Every link's hash covers its own fields and the hash before it: a record that is changed, removed, inserted or moved
breaks the chain (`tenants.audit.chain`). Content may be missing only where a later link in the same chain says that it
was erased, and the first records only where one says that they were pruned. Somebody who may write to the database
could compute the whole chain anew; what such a person cannot change is the newest hash, once it is kept elsewhere:
`opora audit verify` prints it, and checks one that it is given.

Records reach the database through the **spool** (`tenants.audit.spool`): an answer leaves only after its record has
been written to a file there, so a process killed at any moment loses none; a turn that was recorded but whose answer
never left stays recorded. One thread carries the spool into the database and forces it to the disk on the way, within
`recorder.PACE` seconds while the database answers; a power failure can cost that much. A database that is down or slow
makes the spool grow, and nobody wait.
"""
