/* Opora, Apache-2.0 */
var o=document.documentElement.lang,m=new Intl.DateTimeFormat(o,{dateStyle:"medium",timeStyle:"short"}),i=new Intl.DateTimeFormat(o,{dateStyle:"medium"});function n(a){for(let e of a.querySelectorAll("time[datetime]")){let t=new Date(e.dateTime);e.textContent=(e.dataset.form==="day"?i:m).format(t),e.title=m.format(t)}}n(document);
